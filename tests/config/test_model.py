"""What was read can be written by hand too, and shows no secret."""

import msgspec
import pytest

from plait.config import (
    AuditSettings,
    CommandSettings,
    Config,
    HttpServer,
    PolicySettings,
    ResultSettings,
    ServerSettings,
    Settings,
    StdioServer,
    UrlSettings,
    is_prefix,
)
from plait.config.delegation import DelegationConfig
from plait.errors import ConfigError


def test_a_server_written_by_hand_needs_only_its_command() -> None:
    server = StdioServer(command="npx")
    assert (server.name, server.args, server.env, server.cwd, server.where) == ("", (), {}, None, None)
    assert server.settings == ServerSettings()


def test_arguments_and_variables_are_taken_over_and_not_shared() -> None:
    args, env = ["-y", "x"], {"A": "1"}
    server = StdioServer(command="npx", args=args, env=env)
    args.append("z")
    env["B"] = "2"
    assert (server.args, server.env) == (("-y", "x"), {"A": "1"})


def test_one_string_as_arguments_is_refused() -> None:
    with pytest.raises(ConfigError, match="one string per argument"):
        StdioServer(command="npx", args="-y x")


def test_what_was_read_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        StdioServer(command="npx").command = "rm"  # type: ignore[misc]


@pytest.mark.parametrize(
    "fact",
    [
        StdioServer(command="x", env={"TOKEN": "hush"}),
        HttpServer(url="https://ada:hush@api.example/?key=hush", headers={"TOKEN": "hush"}),
        HttpServer(url="https://api.example/", headers={"TOKEN": "hush"}, auth="hush"),
        Config(
            servers=(StdioServer(command="x", env={"TOKEN": "hush"}),),
            settings=Settings(delegation=DelegationConfig(api_key="hush")),
        ),
    ],
)
def test_a_representation_shows_names_and_no_values(fact: StdioServer | HttpServer | Config) -> None:
    for text in (repr(fact), str(fact), f"{fact}", repr(fact.__rich_repr__())):
        assert "hush" not in text
        assert "'TOKEN': '***'" in text


def test_the_representation_is_whole_otherwise() -> None:
    text = repr(StdioServer(name="fs", command="npx", args=["-y"], env={"TOKEN": "hush"}))
    assert text.startswith(
        "StdioServer(name='fs', command='npx', args=('-y',), env={'TOKEN': '***'}, cwd=None,"
    )


def test_defaults_are_as_the_decisions_say() -> None:
    assert Settings() == Settings(
        separator="__",
        name_budget=0,
        page_size=None,
        max_message_bytes=4 * 1024**2,
        start_wait=5.0,
        name="plait",
        builtin=None,
        workspace=None,
        rules=(),
        allowed_tools=None,
        policy=PolicySettings(commands=None, urls=None, parameters=()),
        results=ResultSettings(
            max_bytes=65_536, per_tool={}, tool=False, sanitise=True, strip_invisible=False
        ),
        audit=AuditSettings(mode="best_effort", dir=None),
        limits=ServerSettings(),
    )
    assert ServerSettings() == ServerSettings(
        prefix=None,
        timeout=60.0,
        start_timeout=60.0,
        env=(),
        max_message_bytes=16 * 1024**2,
        tools=None,
        concurrency=128,
        queue=1024,
        sanitise=True,
    )
    assert CommandSettings() == CommandSettings(mode="allowlist", allowlist=(), denylist=(), shell=False)
    assert UrlSettings() == UrlSettings(enabled=True, allow_private=False, private_ranges=(), ports=None)


def test_settings_can_be_varied() -> None:
    varied = msgspec.structs.replace(Settings(), separator=".")
    assert varied.separator == "."


@pytest.mark.parametrize("prefix", ["a", "fs", "compositor_meta", "a-b", "a1", "a-", "a" * 50])
def test_a_prefix_that_fits(prefix: str) -> None:
    assert is_prefix(prefix)


@pytest.mark.parametrize("prefix", ["", "A", "1a", "_a", "a_", "a__b", "a.b", "a b", "é", "a" * 51, "a\n"])
def test_a_prefix_that_does_not_fit(prefix: str) -> None:
    assert not is_prefix(prefix)
