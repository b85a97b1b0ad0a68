"""The headers of the modern HTTP binding."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.wire.address import as_raw
from plait.wire.headers import Misheaded, check, gather, headers_of, read_value, status_of, write_value
from plait.wire.modern import VERSION_KEY

META = {VERSION_KEY: as_raw("2026-07-28")}
CALL = {"name": as_raw("search"), "arguments": as_raw({})}


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("search", "search"),
        ("two words", "two words"),
        ("", ""),
        ("grüße", "=?base64?Z3LDvMOfZQ==?="),
        (" edge", "=?base64?IGVkZ2U=?="),
        ("a\nb", "=?base64?YQpi?="),
        ("a\tb", "=?base64?YQli?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
        ("=?BASE64?YQ==?=", "=?BASE64?YQ==?="),
    ],
)
def test_a_value_is_plain_where_that_is_safe_and_base64_otherwise(text: str, written: str) -> None:
    assert write_value(text) == written
    assert read_value(written) == text


@given(st.text())
def test_reading_is_the_reverse_of_writing(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert read_value(write_value(text)) == text


@pytest.mark.parametrize(
    "written",
    ["=?base64?YQ=?=", "=?base64?YR==?=", "=?base64?Y Q==?=", "=?base64?_w==?=", "=?base64?/w==?=", "grüße"],
    ids=["padding", "spare bits", "blank", "urlsafe", "no UTF-8", "not ASCII"],
)
def test_what_we_would_not_have_written_is_refused(written: str) -> None:
    with pytest.raises(Misheaded):
        read_value(written)


def test_our_own_headers_fit_our_own_body() -> None:
    headers = headers_of("tools/call", CALL, META)
    assert headers == {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "search",
    }
    check(gather(headers.items()), "tools/call", CALL, META)
    assert "Mcp-Name" not in headers_of("tools/list", {}, META)


@pytest.mark.parametrize(
    "headers",
    [
        {"mcp-method": "tools/call", "mcp-name": "search"},
        {"mcp-protocol-version": "2025-11-25", "mcp-method": "tools/call", "mcp-name": "search"},
        {"mcp-protocol-version": "2026-07-28", "mcp-name": "search"},
        {"mcp-protocol-version": "2026-07-28", "mcp-method": "Tools/Call", "mcp-name": "search"},
        {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call"},
        {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "other"},
        {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "=?base64?!?="},
    ],
    ids=["no version", "other version", "no method", "other case", "no name", "other name", "bad base64"],
)
def test_headers_that_disagree_with_the_body_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Misheaded):
        check(headers, "tools/call", CALL, META)


def test_a_name_without_one_in_the_body_is_refused() -> None:
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list", "mcp-name": "x"}
    with pytest.raises(Misheaded):
        check(headers, "tools/list", {}, META)
    with pytest.raises(Misheaded):
        check({**headers, "mcp-method": "tools/call"}, "tools/call", {}, META)


def test_a_header_that_comes_twice_is_refused() -> None:
    assert gather([("Accept", "a"), ("accept", "b"), ("MCP-METHOD", "ping")]) == {"mcp-method": "ping"}
    for name in ("Mcp-Name", "Mcp-Param-Region"):
        with pytest.raises(Misheaded, match="twice"):
            gather([(name, "x"), (name.lower(), "x")])


def test_each_error_has_its_status() -> None:
    statuses = {code: status_of(code) for code in (-32700, -32600, -32602, -32020, -32021, -32022, -32601)}
    assert list(statuses.values()) == [400] * 6 + [404]
    assert status_of(None) == status_of(-32603) == status_of(7) == 200
