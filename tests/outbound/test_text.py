import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as some

from plait.outbound.text import decode_text, find_charset, is_text, media_type


@pytest.mark.parametrize(
    ("content_type", "body", "text"),
    [
        ("text/plain", "grün".encode(), "grün"),
        ("text/plain; charset=utf-8", "grün".encode(), "grün"),
        ('text/plain; Charset="ISO-8859-1"', b"gr\xfcn \x80", "grün €"),
        ("text/plain; charset=windows-1252", b"\x80", "€"),
        ("text/plain; charset=shift_jis", "日本".encode("shift_jis"), "日本"),
        ("text/plain; charset=utf-16le", "hi".encode("utf-16-le"), "hi"),
        ("text/plain", codecs.BOM_UTF8 + b"hi", "hi"),
        ("text/plain; charset=latin1", codecs.BOM_UTF16_LE + "hi".encode("utf-16-le"), "hi"),
        ("text/plain", "hi".encode("utf-32"), "hi"),
        ("text/html", b'<meta charset="koi8-r">\xc1', '<meta charset="koi8-r">а'),
        ("text/html", b"<meta http-equiv=x content='text/html; charset=koi8-r'>\xc1"[0:56] + b"\xc1", None),
        ("text/plain; charset=utf-16", "hi".encode("utf-16-le"), "hi"),
        ("text/plain; charset=no-such", "grün".encode(), "grün"),
        ("text/plain", b"\xff", "\ufffd"),
    ],
)
def test_text_is_read_in_the_charset_that_it_names(content_type: str, body: bytes, text: str | None) -> None:
    decoded = decode_text(content_type, body, cut=False)
    assert decoded == text if text is not None else decoded.endswith("а")


@pytest.mark.parametrize(
    "name", ["punycode", "idna", "unicode_escape", "rot13", "zip", "hex", "utf-7", "undefined"]
)
def test_a_codec_that_is_no_charset_of_the_web_is_not_used(name: str) -> None:
    assert find_charset(f"text/plain; charset={name}", b"") == "utf-8"


def test_a_megabyte_in_a_hostile_charset_is_read_at_once() -> None:
    start = time.monotonic()
    decode_text("text/plain; charset=punycode", b"-" + b"a" * 1_000_000, cut=False)
    assert time.monotonic() - start < 1


def test_a_cut_body_does_not_end_in_half_a_character() -> None:
    assert decode_text("text/plain", "grün".encode()[:3], cut=True) == "gr"
    assert decode_text("text/plain", "grün".encode()[:3], cut=False) == "gr\ufffd"


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("text/html", b"\x00", True),
        ("application/json", b"", True),
        ("application/vnd.api+json; charset=utf-8", b"", True),
        ("image/svg+xml", b"", True),
        ("image/png", b"text", False),
        ("application/pdf", b"", False),
        ("", b"hello", True),
        ("", b"\x89PNG\r\n\x1a\n\x00", False),
        ("application/octet-stream", b"hello", True),
        ("application/octet-stream", b"\xff\xfeh\x00", True),
        ("application/octet-stream", b"\xff\xd8\xff\xe0", False),
        ("", "é".encode()[:1], True),
    ],
)
def test_what_is_text_is_said_by_the_server_or_seen_in_the_bytes(
    content_type: str, body: bytes, expected: bool
) -> None:
    assert is_text(content_type, body) is expected


@given(
    some.binary(),
    some.sampled_from(
        ["utf-8", "utf-16", "utf-32", "gb18030", "iso-2022-jp", "big5hkscs", "cp932", "hz", "koi8-t"]
    ),
    some.booleans(),
)
def test_what_is_read_can_always_be_written_as_utf8(body: bytes, charset: str, cut: bool) -> None:
    decode_text(f"text/plain; charset={charset}", body, cut=cut).encode("utf-8")


def test_a_media_type_has_no_parameters() -> None:
    assert media_type(" Text/HTML ; charset=x") == "text/html"
