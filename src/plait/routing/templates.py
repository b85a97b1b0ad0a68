"""Does a URI come from this template? Enough of RFC 6570 to find the owner, in linear time."""

import re

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")


class Template:
    """A URI template, taken apart once into its literal pieces and what stands between them."""

    def __init__(self, text: str) -> None:
        self.text = text
        pieces = _EXPRESSION.split(text)
        self._literals = pieces[0::3]
        operators = zip(pieces[1::3], pieces[2::3], strict=True)
        # `{x}` stands for one segment; `{+x}`, `{x*}` and the other operators for anything, or nothing.
        self._one_segment = [not operator and not names.endswith("*") for operator, names in operators]
        self.literal = sum(len(piece) for piece in self._literals)
        """How many characters of it are fixed: the more, the better a match."""

    def matches(self, uri: str) -> bool:
        """Each literal piece is looked for after the one before: no backtracking, so no template of a
        hostile server can make a long URI expensive."""
        first, *rest = self._literals
        if not uri.startswith(first):
            return False
        position = len(first)
        for index, (piece, one_segment) in enumerate(zip(rest, self._one_segment, strict=True)):
            last = index == len(rest) - 1
            end = len(uri) - len(piece) if last else uri.find(piece, position + one_segment)
            if end < position or (last and not uri.endswith(piece)):
                return False
            value = uri[position:end]
            if one_segment and (not value or "/" in value):
                return False
            position = end + len(piece)
        return position == len(uri)
