"""Bring a result within its budget, and say what was cut."""

from msgspec import Raw, Struct

from plait.pipeline.blocks import Block, open_blocks, open_object, repeats_a_key
from plait.pipeline.sanitising import count_unseen, neutralise, without_unseen
from plait.pipeline.shortening import MARK, cut, shorten
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY, Fields

STRUCTURED = "structuredContent"


class Document(Struct, frozen=True):
    """Something that was cut, whole."""

    data: bytes
    media_type: str


class OpenResult:
    """A tool's result, opened as far as its texts. What is not changed goes on byte for byte."""

    def __init__(self, raw: Raw, fields: Fields) -> None:
        self._fields = fields
        self._blocks = open_blocks(fields.get("content"))
        # A repeated key is a second opinion on what the result is: only the one we read goes on.
        self.changed = repeats_a_key(raw, fields) or any(block.mended for block in self._blocks or ())
        self.removed: list[Document] = []

    @classmethod
    def of(cls, raw: Raw) -> "OpenResult | None":
        fields = open_object(raw)
        return None if fields is None else cls(raw, fields)

    @property
    def texts(self) -> list[tuple[Block, str]]:
        return [(block, block.text) for block in self._blocks or () if block.text is not None]

    @property
    def size(self) -> int:
        """In bytes, as it counts against the budget: every text, and the structured content."""
        return sum(len(text.encode()) for _, text in self.texts) + len(self._fields.get(STRUCTURED, b""))

    def clean(self, *, strip: bool) -> int:
        """Neutralise the texts. How many invisible characters are left in them."""
        unseen = 0
        for block, text in self.texts:
            cleaned = without_unseen(neutralise(text)) if strip else neutralise(text)
            if cleaned != text:
                self._say(block, cleaned)
            unseen += 0 if strip else count_unseen(cleaned)
        return unseen

    # ---- the budget

    def fit(self, limit: int, schema: Raw | None) -> int:
        """Cut it to its budget. How much of it is left.

        Structured content keeps its place where that leaves some to the text; else it goes first.
        """
        structured = self._fields.get(STRUCTURED)
        if structured is not None and len(structured) > limit - limit // 8:
            self._cut_structured(structured, limit, schema)
        room = limit - len(self._fields.get(STRUCTURED, b""))
        whole = "\n".join(text for _, text in self.texts)
        if not self._cut_texts(room):
            return self.size
        self.removed.insert(0, Document(whole.encode(), "text/plain"))
        return self.size - len(MARK)

    def _cut_structured(self, structured: Raw, limit: int, schema: Raw | None) -> None:
        self.changed = True
        shorter = None if schema is None else shorten(structured, limit // 2, schema)
        if shorter is None:
            del self._fields[STRUCTURED]
        else:
            self._fields[STRUCTURED] = shorter
        whole = neutralise(bytes(structured).decode())
        if self.texts:
            self.removed.append(Document(whole.encode(), "application/json"))
        else:
            # Nobody would see anything: its own beginning is the preview.
            self._blocks = [*(self._blocks or ()), Block(EMPTY, whole, {"type": as_raw("text")})]

    def _cut_texts(self, room: int) -> bool:
        """The first text that does not fit is cut, and those behind it are left out."""
        for position, block in enumerate(self._blocks or ()):
            if block.text is None:
                continue
            size = len(block.text.encode())
            if size > room:
                self._say(block, cut(block.text, room) + MARK)
                self._leave_out_texts(position + 1)
                return True
            room -= size
        return False

    def _leave_out_texts(self, start: int) -> None:
        blocks = self._blocks or []
        self._blocks = blocks[:start] + [block for block in blocks[start:] if block.text is None]

    # ---- putting it together again

    def _say(self, block: Block, text: str) -> None:
        self.changed = True
        block.raw, block.text = block.with_text(text), text

    def append(self, block: dict[str, object]) -> None:
        self.changed = True
        self._blocks = [*(self._blocks or ()), Block(as_raw(block))]

    def note(self, key: str, value: object) -> None:
        """Say something about the result where programs look for it."""
        self.changed = True
        meta = open_object(self._fields.get("_meta")) or {}
        self._fields["_meta"] = as_raw({**meta, key: as_raw(value)})

    def raw(self) -> Raw:
        if self._blocks is not None:
            self._fields["content"] = as_raw([block.raw for block in self._blocks])
        return as_raw(self._fields)
