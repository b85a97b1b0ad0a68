import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from yarl import URL

from loopback import words
from plait.outbound.hosts import InvalidUrl
from plait.outbound.parsing import ParsedUrl, join_url, parse_url
from plait.outbound.transport import as_seen_by_aiohttp


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("http://example.org", "http://example.org/"),
        ("HTTP://Example.Org:80/", "http://example.org/"),
        ("https://example.org:443/a?b#c", "https://example.org/a?b"),
        ("https://example.org:8443?q=1", "https://example.org:8443/?q=1"),
        ("http://example.org./a/../b", "http://example.org/a/../b"),
        ("http://example.org/ü?ü=ü", "http://example.org/%C3%BC?%C3%BC=%C3%BC"),
        ("http://example.org/a%2Fb%zz", "http://example.org/a%2Fb%zz"),
        ('http://example.org/"<>`{}|^', "http://example.org/%22%3C%3E%60%7B%7D%7C%5E"),
        ("http://example.org/@x:1//y", "http://example.org/@x:1//y"),
        ("http://example.org/?u=http://a@b/", "http://example.org/?u=http://a@b/"),
        ("http://0x7f.1:080/", "http://127.0.0.1/"),
        ("http://[::FFFF:8.8.8.8]:81/", "http://[::ffff:808:808]:81/"),
        ("http://example.org/?", "http://example.org/"),
    ],
)
def test_a_url_has_one_spelling(text: str, canonical: str) -> None:
    assert parse_url(text).text == canonical
    assert parse_url(canonical).text == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http",
        "http:",
        "http:/a",
        "http:a",
        "//a",
        "/a",
        "http://",
        "http:///a",
        "http://?a",
        "http://#a",
        "http://:80/",
        "http://a:/",
        "http://a:0/",
        "http://a:65536/",
        "http://a:99999999999/",
        "http://a:8a/",
        "http://a:+80/",
        "http://a:-1/",
        "http://a:８０/",
        "http://a:80:80/",
        "http://u@a/",
        "http://u:p@a/",
        "http://@a/",
        "http://a@/",
        "http://a%40b/",
        "http://a%00b/",
        "http://%31/",
        "http://a b/",
        "http://a/b c",
        " http://a/",
        "http://a/ ",
        "http://a/\n",
        "ht\ttp://a/",
        "http://a\x00/",
        "http://a/\x7f",
        "http://a/\x85",
        "http://a/\u2028",
        "http://a/\ufeff",
        "\ufeffhttp://a/",
        "http:\\\\a\\",
        "http://a\\@b/",
        "http://a/\\",
        "http://[::1",
        "http://[::1]a/",
        "http://[::1]:/",
        "http://a[::1]/",
        "http://::1/",
        "http://a/\ud800",
        "memo://a",
        pytest.param("http://a/" + "b" * 9000, id="long"),
    ],
)
def test_a_url_that_can_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(InvalidUrl) as caught:
        parse_url(text)
    assert "u:p" not in str(caught.value)


def test_the_words_of_a_refusal_never_repeat_the_url() -> None:
    for text in ("http://joe:hunter2@a/", "http://a/?token=hunter2 x", "http://hunter2%/", "hunter2"):
        with pytest.raises(InvalidUrl) as caught:
            parse_url(text)
        assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/b", "http://a.example/b"),
        ("b", "http://a.example/x/b"),
        ("?q", "http://a.example/x/y?q"),
        ("../b", "http://a.example/b"),
        ("../../b", "http://a.example/b"),
        ("..", "http://a.example/"),
        ("//b.example/c", "http://b.example/c"),
        ("https://b.example", "https://b.example/"),
        (" /a b ", "http://a.example/a%20b"),
        ("/.//b.example", "http://a.example//b.example"),
        ("", "http://a.example/x/y"),
    ],
)
def test_a_redirect_is_joined_to_where_it_came_from(location: str, expected: str) -> None:
    assert join_url(parse_url("http://a.example/x/y"), location).text == expected


@pytest.mark.parametrize(
    "location",
    [
        "//[",
        "http://",
        "http:b",
        "http:/b",
        "///b",
        "a:b",
        "\\\\b",
        "/\\b",
        "ht\ttp://b",
        "//b c/",
        "file:///etc/passwd",
        "http://u@b/",
        "//b:0/",
    ],
)
def test_a_redirect_to_nowhere_is_refused(location: str) -> None:
    with pytest.raises(InvalidUrl):
        join_url(parse_url("http://a.example/x/y"), location)


# ---- the same URL in other readers


def connected_to(host: str | None) -> str:
    """Where a socket would go for a host as another reader has it."""
    bare = (host or "").removesuffix(".").lower()
    try:
        return socket.inet_ntoa(socket.inet_aton(bare))
    except (OSError, UnicodeError):
        return bare


def whatwg_cases(corpora: Path) -> Iterator[dict[str, object]]:
    cases = json.loads((corpora / "urltestdata" / "urltestdata.json").read_text(encoding="utf-8"))
    yield from (case for case in cases if isinstance(case, dict))


def read_or_refuse(text: str) -> ParsedUrl | None:
    try:
        return parse_url(text)
    except InvalidUrl:
        return None


def test_we_never_disagree_with_aiohttp_or_browsers_about_the_whatwg_cases(corpora: Path) -> None:
    """Refusing is always fine. Accepted: more than a handful, or the test would show nothing."""
    accepted = 0
    for case in whatwg_cases(corpora):
        text = str(case["input"])
        ours = read_or_refuse(text)
        if ours is None or ours.scheme not in ("http", "https"):
            continue
        accepted += 1
        raw = URL(text)
        assert (raw.scheme, connected_to(raw.raw_host), raw.port) == ours.origin, text
        assert "failure" not in case, text
        port = str(case["port"]) or str(raw.port)
        host = str(case["hostname"]).removeprefix("[").removesuffix("]").removesuffix(".")
        assert (f"{ours.scheme}:", ours.host.name, str(ours.port)) == (case["protocol"], host, port), text
        assert as_seen_by_aiohttp(ours).raw_host == ours.host.name
    assert accepted > 60


def test_redirects_of_the_whatwg_cases_lead_where_browsers_go_or_nowhere(corpora: Path) -> None:
    accepted = 0
    for case in whatwg_cases(corpora):
        base = read_or_refuse(str(case.get("base") or ""))
        if base is None:
            continue
        try:
            ours = join_url(base, str(case["input"]))
        except InvalidUrl:
            continue
        accepted += 1
        assert "failure" not in case, case["input"]
        host = str(case["hostname"]).removeprefix("[").removesuffix("]").removesuffix(".")
        assert (f"{ours.scheme}:", ours.host.name) == (case["protocol"], host), case["input"]
    assert accepted > 60


pieces = some.sampled_from(
    [
        *words("""
http https ftp : :// / // /// @ \\ ? # . .. % %2e %40 %00 [ ] [::1] ::1 127.0.0.1 0x7f.1 2130706433 localhost
example.org EXAMPLE.org a b user pass 80 443 0 65536 ü 。 １ ① xn-- - _ * & ; =
"""),
        *("\t", "\n", "\r", "\x00", "\x7f", " ", "\u2028", "\ud800", "\u00ad", "\u200d", "\ufeff"),
    ]
)


@given(some.one_of(some.text(), some.lists(pieces, max_size=12).map("".join)))
def test_what_is_accepted_means_the_same_host_to_aiohttp(text: str) -> None:
    for candidate in (text, f"http://{text}", f"http://{text}.example/"):
        ours = read_or_refuse(candidate)
        if ours is None:
            continue
        seen = as_seen_by_aiohttp(ours)
        assert (seen.scheme, seen.raw_host, seen.port) == ours.origin
        assert parse_url(str(seen)) == ours
        assert str(seen).isascii()
        assert not set(str(seen)) & set(' \t\r\n\\"<>')
        assert connected_to(URL(candidate).raw_host) == ours.host.name


@given(some.text())
def test_a_redirect_is_read_or_refused_and_nothing_else(location: str) -> None:
    try:
        joined = join_url(parse_url("http://a.example/x/y"), location)
    except InvalidUrl:
        return
    assert as_seen_by_aiohttp(joined).raw_host == joined.host.name


@given(
    some.lists(some.sampled_from(["..", "/", "//", ".", "b", "?", "#", "%2e", "@", ":", ";"])).map("".join)
)
def test_a_redirect_to_a_path_stays_on_its_host(path: str) -> None:
    current = parse_url("http://a.example/x")
    for location in (f"/.{path}", f"../{path}", f"b/{path}", f"?{path}", f"#{path}"):
        assert join_url(current, location).origin == current.origin
