import socket
from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as some

from loopback import words
from plait.outbound.hosts import InvalidUrl, read_host


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Example.ORG", "example.org"),
        ("example.org.", "example.org"),
        ("a_b.example", "a_b.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
        ("1and1.com", "1and1.com"),
        ("3com", "3com"),
        ("0x.example", "0x.example"),
        ("[2606:4700:0::1111]", "2606:4700::1111"),
    ],
)
def test_a_host_has_one_spelling(text: str, name: str) -> None:
    assert read_host(text).name == name


@pytest.mark.requirement("K-06")
@pytest.mark.parametrize(
    "text",
    words("""
       127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.1 0x7F.0.0.1 0177.0.0.1 017700000001 127.0.0.1.
       0x7f.0x0.0x0.0x1 0177.0.0.0x1 0000177.0.0.1 127.0x1"""),
)
def test_a_numeric_host_is_the_address_that_connect_would_take_it_for(text: str) -> None:
    host = read_host(text)
    assert host.address == IPv4Address("127.0.0.1")
    assert host.name == "127.0.0.1"


@pytest.mark.parametrize(
    "text",
    words("""256.1.1.1 1.2.3.4.5 1.2.3.256 4294967296 0x100000000 08.0.0.1 0x 0xg.1 1.0x 1..2 .1 1.2.3.09
       example.1 foo.0x4 127.0.0.1.. 99999999999999999999 -1 +1 1e3.1 [::1 ::1] [] [::1%eth0] [::1%25lo]
       [1.2.3.4] [v1.a] [::127.0.0.256] [::ffff:0127.0.0.1] [[::1]] a..b .a a.. . - -a a- a-.b
       127。0。0。1 １２７.0.0.1
       ①②⑦.0.0.1 ⓛocalhost ｌocalhost loc\u00adalhost local\u200dhost Ünicode.example ſ.example \u212a.example
       exam%70le.org a@b a*b a!b a~b a,b a;b a=b a&b a|b a^b a`b {a} <a> "a" a'b 127.0.0.1٠ ١٢٧.0.0.1
       xn--ü.example १२७.0.0.1"""),
)
def test_a_host_that_can_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(InvalidUrl):
        read_host(text)


def test_a_label_or_a_name_that_is_too_long_is_refused() -> None:
    assert read_host("a" * 63 + ".b").name
    for text in ("a" * 64, ".".join(["abcdefg"] * 32), "ü" * 60, "a" * 100_000):
        with pytest.raises(InvalidUrl):
            read_host(text)


numbers = some.one_of(
    some.integers(0, 300).map(str),
    some.integers(0, 300).map(hex),
    some.integers(0, 300).map(lambda number: f"0{number:o}"),
    some.integers(0, 2**33).map(str),
    some.integers(0, 2**33).map(hex),
    some.sampled_from(["", "08", "0x", "0X7F", "00", "1e1", "0b1"]),
)


@given(some.lists(numbers, min_size=1, max_size=5).map(".".join))
def test_a_numeric_host_is_read_as_the_c_library_reads_it_or_refused(text: str) -> None:
    try:
        host = read_host(text)
    except InvalidUrl:
        return
    try:
        expected = socket.inet_ntoa(socket.inet_aton(text.removesuffix(".")))
    except OSError:
        assert host.address is None
    else:
        assert host.name == expected


@given(some.ip_addresses(v=6))
def test_an_ipv6_host_is_its_address(address: object) -> None:
    host = read_host(f"[{address}]")
    assert host.address == ip_address(str(address))
    assert host.bracketed == f"[{address}]"
