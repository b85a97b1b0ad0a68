from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as some

from loopback import words
from plait.outbound.addresses import destinations, is_metadata, what_is_special

PYTHON_TRAPS = words("""
192.0.0.192 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: fec0::1 224.0.0.1 ff02::1 168.63.129.16 100.64.0.1
100.127.255.255 192.88.99.1 ::7f00:1 64:ff9b::a00:1
""")

SPECIAL = words("""
0.0.0.0 0.1.2.3 10.0.0.1 127.0.0.1 127.255.255.254 169.254.1.1 172.16.0.1 172.31.255.255 192.168.0.1
192.0.0.1 192.0.2.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 239.255.255.255 240.0.0.1
255.255.255.255 :: ::1 fc00::1 fdff::1 fe80::1 febf::1 fec0::1 ff02::1 2001:db8::1 3fff::1 5f00::1 100::1
2001::1 2001:10::1 2001:20::1 2002:808:808:: ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1
64:ff9b::10.0.0.1 64:ff9b:1::1 ::ffff:0:127.0.0.1 4000::1 e000::1
""")

OPEN = words("""
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.1
169.253.255.255 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 198.17.255.255 198.20.0.0
223.255.255.255 2606:4700::1111 2001:4860:4860::8888 2a00:1450::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8
""")

METADATA = words("""
169.254.169.254 169.254.170.2 169.254.170.23 fd00:ec2::254 fd20:ce::254 100.100.100.200 192.0.0.192
168.63.129.16 ::ffff:169.254.169.254 ::169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1
2001:0:a9fe:a9fe::1 2001:0:808:808:0:0:5601:5601 64:ff9b:1::a9fe:a9fe 64:ff9b:1:a9fe:a9:fe00::
64:ff9b:1:a9:fe:a9fe:: 64:ff9b:1:0:a9:fea9:fe00:: ::ffff:0:169.254.169.254
""")


@pytest.mark.requirement("K-06")
@pytest.mark.parametrize("text", [*SPECIAL, *PYTHON_TRAPS])
def test_an_address_that_is_not_on_the_open_internet_is_special_or_metadata(text: str) -> None:
    address = ip_address(text)
    assert what_is_special(address) is not None or is_metadata(address)


@pytest.mark.parametrize("text", OPEN)
def test_an_ordinary_address_is_neither(text: str) -> None:
    assert what_is_special(ip_address(text)) is None
    assert not is_metadata(ip_address(text))


@pytest.mark.requirement("K-06", "BC-33")
@pytest.mark.parametrize("text", METADATA)
def test_a_metadata_service_is_known_through_every_wrapping(text: str) -> None:
    assert is_metadata(ip_address(text))


@pytest.mark.parametrize("text", [*SPECIAL, *OPEN])
def test_no_other_address_is_taken_for_a_metadata_service(text: str) -> None:
    assert not is_metadata(ip_address(text))


def test_a_wrapped_address_is_told_with_what_it_wraps() -> None:
    assert what_is_special(ip_address("::ffff:127.0.0.1")) == "loopback, as 127.0.0.1"
    assert what_is_special(ip_address("127.0.0.1")) == "loopback"


@given(some.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_when_it_is_mapped_or_behind_nat64(address: IPv4Address) -> None:
    for prefix in (0xFFFF << 32, 0x64FF9B << 96):
        wrapped = IPv6Address(prefix | int(address))
        assert destinations(wrapped) == (address,)
        assert (what_is_special(wrapped) is None) == (what_is_special(address) is None)
        assert is_metadata(wrapped) == is_metadata(address)


@given(some.ip_addresses())
def test_what_python_calls_private_is_special_for_us(address: IPv4Address | IPv6Address) -> None:
    if (address.is_private or address.is_multicast or address.is_reserved) and destinations(address) == (
        address,
    ):
        assert what_is_special(address) is not None
