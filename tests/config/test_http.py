"""What a file may say of clients over HTTP."""

from collections.abc import Callable
from pathlib import Path

import pytest

from plait.config import Config, load
from plait.config.access import HttpSettings, OAuthSettings, Place, TokenSetting
from plait.config.http import is_token_name, read_place, read_time

Read = Callable[..., Config]
DIGEST = "ab" * 32


def own(text: str) -> str:
    return '{"plait": {' + text + "}}"


def test_nothing_said_is_loopback_and_no_tokens(read: Read) -> None:
    settings = read("{}").settings
    assert (settings.listen, settings.http) == (Place("127.0.0.1", 7524), HttpSettings())


def test_everything_can_be_said(read: Read) -> None:
    config = read(
        own(
            '"listen": "0.0.0.0:80", "http": {"allowedHosts": ["gw.example", "[::1]:80"],'
            '"allowedOrigins": ["https://app.example"], "sessionIdle": 60,'
            '"maxSessions": 5, "maxConnections": 9,'
            '"tokens": {"a@b.example": {"sha256": "' + DIGEST + '", "tools": ["fs__*"],'
            '"expires": "2027-01-31", "sessions": 2, "rate": 3}},'
            '"oauth": {"issuer": "https://i.example", "resource": "https://gw.example/mcp",'
            '"jwksUrl": "http://localhost:1/k", "scopes": {"s": ["x*"]}}}'
        )
    )
    assert config.problems == ()
    assert config.settings.listen == Place("0.0.0.0", 80)
    assert config.settings.http == HttpSettings(
        allowed_hosts=("gw.example", "[::1]:80"),
        allowed_origins=("https://app.example",),
        session_idle=60,
        max_sessions=5,
        max_connections=9,
        tokens=(
            TokenSetting(
                name="a@b.example", sha256=DIGEST, tools=("fs__*",), expires=1801353600, sessions=2, rate=3
            ),
        ),
        oauth=OAuthSettings(
            issuer="https://i.example",
            resource="https://gw.example/mcp",
            jwks_url="http://localhost:1/k",
            scopes={"s": ("x*",)},
        ),
    )


def test_tokens_of_several_files_are_put_together(tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    for file in files:
        file.write_text(own('"http": {"tokens": {"%s": {"sha256": "%s"}}}' % (file.name, DIGEST)))
    assert [token.name for token in load(files, {}).settings.http.tokens] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        '"listen": "nowhere"',
        '"listen": "127.0.0.1:99999"',
        '"listen": 7524',
        '"http": 1',
        '"http": {"tokens": []}',
        '"http": {"tokens": {"anonymous": {"sha256": "' + DIGEST + '"}}}',
        '"http": {"tokens": {"*": {"sha256": "' + DIGEST + '"}}}',
        '"http": {"tokens": {"a": {}}}',
        '"http": {"tokens": {"a": {"sha256": "secret-token"}}}',
        '"http": {"tokens": {"a": {"token": "secret-token"}}}',
        '"http": {"tokens": {"a": {"sha256": "' + DIGEST + '", "expires": "soon"}}}',
        '"http": {"tokens": {"a": {"sha256": "' + DIGEST + '", "expires": 7}}}',
        '"http": {"allowedHosts": ["https://x.example"]}',
        '"http": {"allowedHosts": "x.example"}',
        '"http": {"allowedOrigins": ["x.example"]}',
        '"http": {"allowedOrigins": ["https://x.example/path"]}',
        '"http": {"oauth": {}}',
        '"http": {"oauth": {"issuer": "https://i.example"}}',
        '"http": {"oauth": {"issuer": "http://i.example", "resource": "https://x.example"}}',
        '"http": {"oauth": {"issuer": "https://u:p@i.example", "resource": "https://x.example"}}',
        '"http": {"alowedHosts": []}',
    ],
)
def test_a_mistake_in_who_may_come_in_lets_nobody_do_anything(read: Read, text: str) -> None:
    config = read(own(text))
    assert "C112" in {problem.code for problem in config.problems}
    assert config.settings.rules[0].effect == "deny"
    assert not any("secret-token" in problem.render() for problem in config.problems)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("localhost:1", Place("localhost", 1)),
        ("[::]:7524", Place("::", 7524)),
        ("1.2.3.4:0", Place("1.2.3.4", 0)),
        ("::1:80", None),
        (":80", None),
        ("host", None),
        ("a b:1", None),
    ],
)
def test_a_place_has_an_address_and_a_port(text: str, place: Place | None) -> None:
    assert read_place(text) == place
    assert place is None or str(place) == text


def test_times_are_of_utc_unless_they_say_otherwise() -> None:
    assert read_time("1970-01-02") == read_time("1970-01-02T01:00:00+01:00") == 86400
    assert read_time("tomorrow") is None


@pytest.mark.parametrize("name", ["a", "a.b_c@d-e", "9", "x" * 64])
def test_names_of_tokens_are_no_patterns(name: str) -> None:
    assert is_token_name(name)
    assert not is_token_name(f"{name}*")
