"""A call's arguments as they may be recorded: their shape, and a keyed hash that tells them apart.

The hash is made after values under secret names and of secret type are taken out: they are often
short, and whoever gets hold of the key could guess them. What is secret by its looks is long and
random, and cannot be guessed.
"""

import re
from collections.abc import Collection

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Encoder, decode

from plait.pipeline.ledger_chain import Key
from plait.pipeline.redaction import REDACTED, is_secret_name, redact, redact_text, redact_uri

MAX_READ = 16 * 1024
"""Bytes of arguments that are read whole. Larger ones are hashed as they came, and have no shape."""
MAX_SUMMARY = 200
_MAX_DEPTH = 4
_MAX_KEYS = 40
_MAX_NAMES = 10_000
_MAX_KEPT = 64
_LONG_KEY = 16
"""A shorter key is no token."""

_URI = re.compile(r"[A-Za-z][\w+.-]*://\S*")
_canonical = Encoder(order="sorted").encode
_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


class Description(Struct, gc=False):
    """All that is recorded of arguments."""

    shape: object = None
    digest: str = ""
    digest_of: str = ""
    summary: str = ""
    redacted: int = 0


NONE = Description()


class Describer:
    """Remembers which names are secret: the same few come again and again."""

    def __init__(self, summaries: bool) -> None:
        self._summaries = summaries
        self._names: dict[str, bool] = {}

    def describe(self, key: Key, raw: Raw, secret: Collection[str], whole: bool = False) -> Description:
        """`whole`: record what is not secret as it is; a tool that asks for that refuses larger ones."""
        if len(raw) > MAX_READ:
            return Description("large", key.digest(bytes(raw)), "raw")
        try:
            made = self._read(key, decode(raw), secret)
            if whole:
                made.summary = _canonical(redact(without_secrets(decode(raw)), secret)[0]).decode()
                made.redacted = made.summary.count(REDACTED)
            return made
        except (MsgspecError, UnicodeDecodeError, RecursionError):
            return Description("unreadable", key.digest(bytes(raw)), "raw")

    def _read(self, key: Key, arguments: object, secret: Collection[str]) -> Description:
        plain = self._plain(arguments) if not secret and not self._summaries else None
        if plain is not None:
            return Description(plain, key.digest(_canonical(arguments)))
        hidden = _Hidden(secret, self._names)
        shape = hidden.shape(arguments, 0)
        if hidden.count:
            arguments = hidden.without(arguments)
        if len(self._names) > _MAX_NAMES:
            self._names.clear()
        made = Description(shape, key.digest(_canonical(arguments)), redacted=hidden.count)
        if self._summaries:
            shown, made.redacted = redact(arguments, secret)
            made.summary = _cut(_canonical(shown))
        return made

    def _plain(self, arguments: object) -> dict[str, str] | None:
        """The shape of the common case: a few plain values under short names known to be harmless."""
        if type(arguments) is not dict or len(arguments) > _MAX_KEYS:
            return None
        shape: dict[str, str] = {}
        for key, value in arguments.items():
            name = _NAMES.get(type(value))
            if name is None or len(key) >= _LONG_KEY or self._names.get(key) is not False:
                return None
            shape[key] = name
        return shape


class _Hidden:
    """One look at one call's arguments."""

    def __init__(self, secret: Collection[str], names: dict[str, bool]) -> None:
        self.count = 0
        """Values under secret names."""
        self._secret = secret
        self._names = names

    def shape(self, value: object, depth: int) -> object:
        """Keys and types. A secret's type is not told either: a number is easily guessed."""
        name = _NAMES.get(type(value))
        if name is not None:
            return name
        if isinstance(value, list):
            return self._list_shape(value, depth)
        assert isinstance(value, dict)
        if depth == _MAX_DEPTH:
            # What is deeper is not shown; but it is looked through, for what is secret.
            for key, each in value.items():
                self._member(key, each, depth)
            return "object"
        shape = {_shown(key): self._member(key, each, depth + 1) for key, each in value.items()}
        if len(shape) <= _MAX_KEYS:
            return shape
        return {**dict(list(shape.items())[:_MAX_KEYS]), "…": len(shape) - _MAX_KEYS}

    def _member(self, key: str, value: object, depth: int) -> object:
        if self._is_secret(key):
            self.count += 1
            return "secret"
        return self.shape(value, depth)

    def _list_shape(self, items: list[object], depth: int) -> object:
        """The shapes that occur, each once."""
        if depth == _MAX_DEPTH:
            for each in items:
                self.shape(each, depth)
            return "array"
        shapes: list[object] = []
        for each in items:
            shape = self.shape(each, depth + 1)
            if len(shapes) < 5 and shape not in shapes:
                shapes.append(shape)
        return shapes

    def without(self, value: object) -> object:
        """The same value without what is under secret names."""
        if isinstance(value, list):
            return [self.without(each) for each in value]
        if isinstance(value, dict):
            return {
                key: REDACTED if self._is_secret(key) else self.without(each) for key, each in value.items()
            }
        return value

    def _is_secret(self, key: str) -> bool:
        known = self._names.get(key)
        if known is None:
            known = is_secret_name(key[:200])
            if len(key) < _MAX_KEPT:
                self._names[key] = known
        return known or key in self._secret


def without_secrets(value: object) -> object:
    """Commands and addresses without what people put into them: `--token abc`, and a URL's query."""
    if isinstance(value, str):
        return redact_uri(value)[0] if _URI.fullmatch(value) else value
    if isinstance(value, dict):
        return {key: without_secrets(each) for key, each in value.items()}
    if isinstance(value, list):
        return [
            REDACTED if isinstance(each, str) and _is_secret_flag(before) else without_secrets(each)
            for before, each in zip([None, *value], value, strict=False)
        ]
    return value


def _is_secret_flag(before: object) -> bool:
    return isinstance(before, str) and before.startswith("-") and is_secret_name(before[:200])


def _shown(key: str) -> str:
    return key if len(key) < _LONG_KEY else redact_text(key[:200])[0][:100]


def _cut(summary: bytes) -> str:
    """At most 200 bytes and three dots, never half a character."""
    if len(summary) <= MAX_SUMMARY:
        return summary.decode()
    return summary[:MAX_SUMMARY].decode(errors="ignore") + "..."
