"""From the bytes of a body to text, or to the knowledge that they are none."""

import codecs
import re

_TEXTUAL = re.compile(
    r"text/.*"
    r"|application/(json|xml|javascript|ecmascript|x-javascript|yaml|x-yaml|toml|graphql|sql|rtf"
    r"|x-www-form-urlencoded|x-ndjson|jsonlines|x-sh)"
    r"|.*\+(json|xml|yaml)"
)
_CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s;"]+)', re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{0,256}?charset\s*=\s*[\"']?([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it starts with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_OPENED = re.compile(
    r"utf-(8|16|16-le|16-be|32|32-le|32-be)|ascii|iso8859-\d+|cp\d+|koi8-[rut]|mac-\w+"
    r"|shift_jis(x0213|_2004)?|euc_\w+|iso2022_\w+|gb2312|gbk|gb18030|hz|big5(hkscs)?|johab|tis-620"
)
"""Codecs that take linear time. Python has others, such as `punycode`, whose time grows with the square."""
_MEANT = {"iso8859-1": "cp1252", "ascii": "cp1252", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
"""As on the web: Latin-1 is Windows-1252, and what has no byte order mark is little-endian."""


def media_type(content_type: str) -> str:
    """The type without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def is_text(content_type: str, body: bytes) -> bool:
    """What the server says decides; if it says nothing useful, the first bytes do."""
    said = says_text(content_type)
    if said is not None:
        return said
    start = body[:4096]
    return _charset_of_mark(start) is not None or (b"\x00" not in start and _is_utf8(start))


def says_text(content_type: str) -> bool | None:
    """Whether the type is one of text. None: it says nothing, or that these are some bytes."""
    kind = media_type(content_type)
    if not kind or kind == "application/octet-stream":
        return None
    return _TEXTUAL.fullmatch(kind) is not None


def decode_text(content_type: str, body: bytes, *, cut: bool) -> str:
    """The text of a body. One that was cut does not end in half a character."""
    decoder = codecs.getincrementaldecoder(find_charset(content_type, body))("replace")
    return decoder.decode(body, not cut)


def find_charset(content_type: str, body: bytes) -> str:
    """In the order of browsers: byte order mark, header, what the page says of itself, UTF-8."""
    mark = _charset_of_mark(body)
    if mark is not None:
        return mark
    declared = _CHARSET.search(content_type)
    if declared is not None and (charset := _known(declared[1])) is not None:
        return charset
    described = _META.search(body[:1024]) if media_type(content_type).endswith(("html", "xml")) else None
    charset = None if described is None else _known(described[1].decode("ascii"))
    return charset or "utf-8"


def _charset_of_mark(body: bytes) -> str | None:
    return next((charset for mark, charset in _BOMS if body.startswith(mark)), None)


def _known(name: str) -> str | None:
    try:
        charset = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    if _OPENED.fullmatch(charset) is None:
        return None
    return _MEANT.get(charset, charset)


def _is_utf8(start: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return True
