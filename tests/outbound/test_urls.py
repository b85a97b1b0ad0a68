from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as some

import plait.outbound.urls as urls
from loopback import Names, words
from plait.errors import ConfigError
from plait.outbound.hosts import InvalidUrl
from plait.outbound.parsing import parse_url
from plait.outbound.urls import Approved, Refusal, UrlPolicy

OPEN = "93.184.216.34"


def rule(policy: UrlPolicy, url: str) -> str | None:
    verdict = policy.judge(url)
    return verdict.rule if isinstance(verdict, Refusal) else None


async def resolved_rule(policy: UrlPolicy, url: str, *addresses: str) -> str | None:
    verdict = await policy.judge_resolved(url, Names(site_test=[addresses]))
    return verdict.rule if isinstance(verdict, Refusal) else None


# ---- the order of BC-32, without what K-06 found in it


@pytest.mark.requirement("BC-31")
def test_the_fields_and_their_defaults_are_those_of_the_seed() -> None:
    policy = UrlPolicy()
    assert (policy.enabled, policy.allow_private) == (True, False)
    assert (policy.allowed_domains, policy.blocked_domains) == ((), ())
    assert policy.schemes == ("http", "https")


@pytest.mark.requirement("BC-32")
async def test_a_policy_that_is_switched_off_refuses_nothing() -> None:
    policy = UrlPolicy(enabled=False)
    for url in (
        "http://169.254.169.254/",
        "http://localhost/",
        "file:///etc/passwd",
        "no url",
        "http://u:p@a/",
    ):
        assert isinstance(policy.judge(url), Approved)
        assert isinstance(await policy.judge_resolved(url), Approved)


@pytest.mark.requirement("BC-35")
@pytest.mark.parametrize(
    ("url", "rule", "words"),
    [
        ("not a url", "invalid", "invalid URL: "),
        ("http:///a", "invalid", "invalid URL: there is no host"),
        ("ftp://a/", "scheme", "invalid URL: http or https is needed, not ftp"),
        ("http://169.254.169.254/", "metadata", "blocked cloud metadata endpoint: 169.254.169.254"),
        ("http://metadata.google.internal/", "metadata", "blocked cloud metadata endpoint: metadata.google"),
        ("http://10.0.0.1/", "private", "blocked private IP 10.0.0.1 (private) for host 10.0.0.1"),
        ("http://localhost:8080/", "private", "blocked private IP 127.0.0.1 (loopback) for host localhost"),
        ("http://www.evil.example/", "domain", "blocked domain: www.evil.example"),
    ],
)
def test_a_refusal_says_which_rule_and_why(url: str, rule: str, words: str) -> None:
    verdict = UrlPolicy(blocked_domains=("evil.example",)).judge(url)
    assert isinstance(verdict, Refusal)
    assert verdict.rule == rule
    assert verdict.reason.startswith(words)


async def test_an_ordinary_url_is_approved_with_all_its_addresses() -> None:
    verdict = await UrlPolicy().judge_resolved(
        "HTTP://Site.Test:8080/a#b", Names(site_test=[[OPEN, "2606:4700::1"]])
    )
    assert verdict == Approved(
        "http://site.test:8080/a", "site.test", 8080, (ip_address(OPEN), ip_address("2606:4700::1"))
    )


def test_a_literal_address_needs_no_resolver() -> None:
    assert UrlPolicy().judge(f"http://{OPEN}/") == Approved(f"http://{OPEN}/", OPEN, 80, (ip_address(OPEN),))


@pytest.mark.requirement("K-06", "BC-32")
async def test_a_name_that_cannot_be_resolved_is_refused() -> None:
    verdict = await UrlPolicy().judge_resolved("http://nowhere.test/", Names())
    assert verdict == Refusal("unresolved", "failed to resolve nowhere.test: Name or service not known")
    assert await resolved_rule(UrlPolicy(), "http://site.test/") == "unresolved"


@pytest.mark.requirement("K-06")
async def test_one_bad_address_among_good_ones_refuses_the_host() -> None:
    assert await resolved_rule(UrlPolicy(), "http://site.test/", OPEN, "8.8.8.8") is None
    assert await resolved_rule(UrlPolicy(), "http://site.test/", OPEN, "10.0.0.1") == "private"
    assert await resolved_rule(UrlPolicy(), "http://site.test/", OPEN, "::1") == "private"
    assert await resolved_rule(UrlPolicy(), "http://site.test/", OPEN, "169.254.169.254") == "metadata"


@pytest.mark.requirement("BC-32", "BC-33", "K-06")
@pytest.mark.parametrize(
    "policy",
    [
        UrlPolicy(),
        UrlPolicy(allow_private=True),
        UrlPolicy(allowed_domains=("site.test", "*.internal", "metadata.google.internal", "169.254.169.254")),
        UrlPolicy(private_ranges=("0.0.0.0/0", "::/0")),
    ],
    ids=["default", "allow_private", "allowed_domains", "private_ranges"],
)
async def test_nothing_opens_a_metadata_service(policy: UrlPolicy) -> None:
    for host in sorted(urls.METADATA_HOSTS):
        assert rule(policy, f"http://{host}./latest") == "metadata"
    for host in (
        "169.254.169.254",
        "0xa9fea9fe",
        "[::ffff:a9fe:a9fe]",
        "[fd00:ec2::254]",
        "[64:ff9b::a9fe:a9fe]",
    ):
        assert rule(policy, f"http://{host}/latest") == "metadata"
    assert await resolved_rule(policy, "http://site.test/", "169.254.170.2") == "metadata"
    assert await resolved_rule(policy, "http://site.test/", "2002:a9fe:a9fe::") == "metadata"


@pytest.mark.requirement("BC-32", "K-06")
async def test_an_allowed_domain_opens_private_addresses_of_that_domain_alone() -> None:
    policy = UrlPolicy(allowed_domains=("site.test", "LOCALHOST", "10.1.2.3", "::1"))
    assert await resolved_rule(policy, "http://site.test/", "127.0.0.1", "10.0.0.1") is None
    for url in ("http://localhost:1/", "http://10.1.2.3/", "http://0xa010203/", "http://[::1]/"):
        assert rule(policy, url) is None
    for url in ("http://127.0.0.1/", "http://a.localhost/", "http://10.1.2.4/", "http://[::2]/"):
        assert rule(policy, url) == "private"
    sub = await policy.judge_resolved("http://a.site.test/", Names(a_site_test=[["10.0.0.1"]]))
    assert isinstance(sub, Refusal)


async def test_a_star_means_the_hosts_below_a_domain() -> None:
    policy = UrlPolicy(allowed_domains=("*.corp.test",))
    below = await policy.judge_resolved("http://a.b.corp.test/", Names(a_b_corp_test=[["10.0.0.1"]]))
    assert isinstance(below, Approved)
    for host in ("corp.test", "evilcorp.test"):
        verdict = await policy.judge_resolved(
            f"http://{host}/", Names(**{host.replace(".", "_"): [["10.0.0.1"]]})
        )
        assert isinstance(verdict, Refusal)


@pytest.mark.requirement("BC-32", "K-06")
def test_a_blocked_domain_is_blocked_in_every_spelling_and_with_all_below_it() -> None:
    policy = UrlPolicy(blocked_domains=("Evil.example.", "bücher.example", "8.8.8.8"), allow_private=True)
    for host in (
        "evil.example",
        "EVIL.example.",
        "a.b.evil.example",
        "xn--bcher-kva.example",
        "bücher.example",
    ):
        assert rule(policy, f"http://{host}/") == "domain"
    assert rule(policy, "http://0x08080808/") == "domain"
    assert rule(policy, "http://notevil.example/") is None


def test_an_allowed_domain_is_an_exception_to_a_blocked_one() -> None:
    policy = UrlPolicy(blocked_domains=("evil.example",), allowed_domains=("good.evil.example",))
    assert rule(policy, "http://good.evil.example/") is None
    assert rule(policy, "http://bad.evil.example/") == "domain"


@pytest.mark.requirement("BC-34", "BC-36", "K-06")
@pytest.mark.parametrize(
    "host",
    words("""
       10.0.0.1 172.16.0.1 192.168.1.1 127.0.0.1 169.254.1.1 0.0.0.0 [::1] [fe80::1] [fc00::1]
       [::ffff:10.0.0.1] localhost. a.localhost [::] 100.64.0.1 224.0.0.1 198.18.0.1 [64:ff9b::7f00:1]
       [2002:7f00:1::] localhost 2130706433 127.1 0x7f.1 [::ffff:7f00:1]"""),
)
def test_private_hosts_are_refused_and_opened_only_by_allow_private(host: str) -> None:
    assert rule(UrlPolicy(), f"http://{host}/") == "private"
    assert rule(UrlPolicy(allow_private=True), f"http://{host}/") is None


async def test_a_private_range_opens_what_lies_in_it_and_nothing_else() -> None:
    policy = UrlPolicy(private_ranges=("10.1.0.0/16", "fd12::/16"))
    assert await resolved_rule(policy, "http://site.test/", "10.1.2.3", OPEN, "fd12::1") is None
    assert await resolved_rule(policy, "http://site.test/", "10.2.0.1") == "private"
    assert rule(policy, "http://[::ffff:10.1.2.3]/") is None
    assert rule(policy, "http://[::10.1.2.3]/") == "private"


def test_ports_and_schemes_can_be_narrowed() -> None:
    policy = UrlPolicy(schemes=("HTTPS",), ports=(443, 8443))
    assert rule(policy, "https://a.example:8443/") is None
    assert rule(policy, "https://a.example:22/") == "port"
    assert rule(policy, "http://a.example:443/") == "scheme"


def test_other_schemes_are_refused() -> None:
    for url in (
        "ftp://a/",
        "gopher://a:70/",
        "ws://a/",
        "file://a:1/etc/passwd",
        "dict://a:1/",
        "ldap://a:1/",
    ):
        assert rule(UrlPolicy(), url) == "scheme"
    for url in ("file:///etc/passwd", "javascript:alert(1)", "data:text/plain,a", "jar:http://a!/", "http:a"):
        assert rule(UrlPolicy(), url) == "invalid"


@pytest.mark.parametrize("entry", ["", "http://a", "a:80", "*", "a/b", "*.*.a", "a..b", "u@a"])
def test_a_domain_that_is_none_is_a_mistake_in_the_configuration(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"urls\.blocked_domains"):
        UrlPolicy(blocked_domains=(entry,))


def test_one_string_for_a_list_and_a_range_with_host_bits_are_mistakes_too() -> None:
    for mistake in ("a.example", b"a"):
        with pytest.raises((ConfigError, AttributeError)):
            UrlPolicy(allowed_domains=mistake)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"urls\.private_ranges"):
        UrlPolicy(private_ranges=("10.0.0.1/8",))


# ---- whatever the text

hosts = some.one_of(
    some.text(max_size=20),
    some.ip_addresses().map(lambda address: f"[{address}]" if address.version == 6 else str(address)),
    some.integers(0, 2**32).map(str),
    some.sampled_from(["localhost", "metadata.google.internal", "example.org", "0x7f.1", "127.0.0.1\\@a"]),
)
texts = some.one_of(
    some.text(),
    some.builds(
        "{}{}{}{}{}".format,
        some.sampled_from(["http://", "https://", "HTTP://", "ftp://", "//", "http:/", ""]),
        some.sampled_from(["", "a@", "a:b@"]),
        hosts,
        some.sampled_from(["", ":80", ":0", ":", ":x"]),
        some.text(max_size=10),
    ),
)


@given(texts, some.booleans(), some.booleans())
def test_judge_never_raises(text: str, enabled: bool, allow_private: bool) -> None:
    verdict = UrlPolicy(enabled=enabled, allow_private=allow_private).judge(text)
    if isinstance(verdict, Refusal):
        assert verdict.reason.isprintable()


@given(texts)
def test_what_is_approved_is_approved_again_in_its_own_spelling(text: str) -> None:
    verdict = UrlPolicy().judge(text)
    if isinstance(verdict, Approved):
        assert UrlPolicy().judge(verdict.url) == verdict
        assert parse_url(verdict.url).host.name == verdict.host


@given(some.ip_addresses())
async def test_a_literal_and_a_name_with_that_address_are_judged_alike(address: object) -> None:
    host = f"[{address}]" if ":" in str(address) else str(address)
    policy = UrlPolicy()
    assert rule(policy, f"http://{host}/") == await resolved_rule(policy, "http://site.test/", str(address))


def test_the_naughty_strings_are_refused_or_read(corpora: object) -> None:
    from pathlib import Path

    assert isinstance(corpora, Path)
    for file in (corpora / "naughty-strings").glob("*.txt"):
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            for text in (line, f"http://{line}/", f"http://example.org/{line}"):
                assert isinstance(UrlPolicy().judge(text), Approved | Refusal)


def test_an_invalid_url_is_a_value_error_for_those_who_parse_themselves() -> None:
    assert issubclass(InvalidUrl, ValueError)
