"""One entry: which server it is, and why it is none."""

from collections.abc import Callable
from pathlib import Path

import pytest

from plait.config import Config, HttpServer, PythonServer, Server, ServerSettings, StdioServer


def one(config: Config) -> Server:
    (server,) = config.servers
    return server


def entry(body: str) -> str:
    return '{"mcpServers": {\n"fs": {' + body + "}}}"


@pytest.mark.requirement("BC-13")
def test_a_command_wins_over_a_url(read: Callable[..., Config]) -> None:
    config = read(entry('"type": "http", "command": "x", "url": "${UNSET}"'))
    assert isinstance(one(config), StdioServer)
    assert not config.problems


@pytest.mark.requirement("BC-13")
@pytest.mark.parametrize("command", ['""', "null", '"${EMPTY:-}"'])
def test_without_a_command_the_url_counts(read: Callable[..., Config], command: str) -> None:
    server = one(read(entry(f'"command": {command}, "url": "https://x.example/mcp"')))
    assert isinstance(server, HttpServer)
    assert server.url == "https://x.example/mcp"


@pytest.mark.requirement("BC-13")
@pytest.mark.parametrize("body", ["", '"command": ""', '"url": ""', '"type": "stdio", "args": ["x"]'])
def test_with_neither_the_server_is_left_out(read: Callable[..., Config], body: str) -> None:
    config = read(entry(body))
    assert config.servers == ()
    (problem,) = config.problems
    assert (problem.code, str(problem)) == (
        "C108",
        "plait.json:2:1: server 'fs' has neither a command nor a url",
    )


@pytest.mark.parametrize("key", ["url", "httpUrl", "serverUrl", "uri"])
def test_a_url_has_several_names(read: Callable[..., Config], key: str) -> None:
    assert isinstance(one(read(entry(f'"{key}": "https://x.example"'))), HttpServer)


@pytest.mark.parametrize("key", ["type", "transport", "transportType"])
@pytest.mark.parametrize(
    ("word", "transport"),
    [
        ("http", "http"),
        ("streamable-http", "http"),
        ("streamableHttp", "http"),
        ("streamable_http", "http"),
        ("sse", "sse"),
        ("stdio", None),
    ],
)
def test_a_transport_has_several_names(
    read: Callable[..., Config], key: str, word: str, transport: str | None
) -> None:
    config = read(entry(f'"{key}": "{word}", "url": "https://x.example"'))
    server = one(config)
    assert isinstance(server, HttpServer)
    assert server.transport == transport
    assert not config.problems


def test_an_unknown_transport_is_a_warning(read: Callable[..., Config]) -> None:
    config = read(entry('"type": "htp", "url": "https://x.example"'))
    assert config.servers
    (problem,) = config.problems
    assert (problem.severity, problem.message) == (
        "warning",
        "'htp' is no transport that we know. Did you mean 'http'?",
    )


def test_goose_has_its_own_words(read: Callable[..., Config]) -> None:
    server = one(read(entry('"cmd": "x", "envs": {"A": "1"}, "enabled": true')))
    assert isinstance(server, StdioServer)
    assert (server.command, server.env) == ("x", {"A": "1"})


@pytest.mark.parametrize("body", ['"disabled": true', '"enabled": false'])
def test_a_server_that_is_switched_off_is_left_out_silently(read: Callable[..., Config], body: str) -> None:
    config = read(entry(f'{body}, "command": 7, "env": "${{UNSET}}"'))
    assert (config.servers, config.problems) == ((), ())


@pytest.mark.parametrize("body", ['"disabled": false', '"enabled": true'])
def test_a_server_that_is_switched_on_is_there(read: Callable[..., Config], body: str) -> None:
    assert read(entry(f'{body}, "command": "x"')).servers


def test_every_text_of_an_entry_is_expanded(read: Callable[..., Config]) -> None:
    config = read(
        entry('"command": "${A}", "args": ["${A}", "$$"], "env": {"${A}": "${A}"}, "cwd": "/${A}"'), A="a"
    )
    server = one(config)
    assert isinstance(server, StdioServer)
    assert (server.command, server.args, server.env, server.cwd) == ("a", ("a", "$"), {"${A}": "a"}, "/a")
    remote = one(read(entry('"url": "https://${A}", "headers": {"X": "${A}"}'), A="a"))
    assert isinstance(remote, HttpServer)
    assert (remote.url, remote.headers) == ("https://a", {"X": "a"})


def test_a_token_is_read_and_a_sign_in_is_left_to_others(read: Callable[..., Config]) -> None:
    def token(text: str) -> str | None:
        server = one(read(entry(f'"url": "https://x", "auth": {text}'), T="hush"))
        assert isinstance(server, HttpServer)
        return server.auth

    assert token('"${T}"') == "hush"
    assert [token(text) for text in ('"oauth"', '"OAuth"', '""', '{"CLIENT_ID": "x"}', "null")] == [None] * 5


def test_a_token_that_no_header_can_hold_is_refused_and_not_shown(read: Callable[..., Config]) -> None:
    config = read(entry('"url": "https://x", "auth": "hu\\nsh"'))
    (problem,) = config.problems
    assert problem.message == "this token cannot be sent in a header"
    assert "sh" not in str(problem.excerpt).replace("https", "")


def test_a_relative_folder_is_in_the_project(read: Callable[..., Config], tmp_path: Path) -> None:
    server = one(read(entry('"command": "x", "cwd": "sub"')))
    assert isinstance(server, StdioServer)
    assert server.cwd == str(tmp_path / "sub")


def test_a_number_for_a_variable_is_taken_as_it_is_written(read: Callable[..., Config]) -> None:
    server = one(read(entry('"command": "x", "env": {"A": 1e3, "B": 0.10}')))
    assert isinstance(server, StdioServer)
    assert server.env == {"A": "1e3", "B": "0.10"}


def test_the_place_of_a_server_is_its_key(read: Callable[..., Config]) -> None:
    where = one(read(entry('"command": "x"'))).where
    assert where is not None
    assert (str(where), where.path) == ("plait.json:2:1", "mcpServers.fs")


def test_an_unset_variable_points_at_its_placeholder(read: Callable[..., Config]) -> None:
    config = read(entry('\n  "command": "x", "args": ["-y", "\\"\\u00e9 ${NOPE}"]'))
    (problem,) = config.problems
    assert (problem.code, problem.server) == ("C104", "fs")
    assert str(problem) == "plait.json:3:44: environment variable NOPE is not set"
    assert problem.where is not None
    assert problem.where.path == "mcpServers.fs.args[1]"
    assert problem.excerpt == '"command": "x", "args": ["-y", "\\"\\u00e9 ${NOPE}"]}}}'


def test_every_unset_variable_of_a_server_is_told(read: Callable[..., Config]) -> None:
    config = read(entry('"command": "${A}", "args": ["${B}${C}"], "env": {"X": "${D}"}, "cwd": "${E}"'))
    # The command comes first: without it we cannot know whether the rest counts.
    assert [problem.message.split()[2] for problem in config.problems] == ["A"]
    config = read(entry('"command": "x", "args": ["${B}${C}"], "env": {"X": "${D}"}, "cwd": "${E}"'))
    assert {problem.message.split()[2] for problem in config.problems} == {"B", "C", "D", "E"}


@pytest.mark.parametrize(
    ("body", "message", "path"),
    [
        ('"command": ["x"]', "expected a string, got a list", "command"),
        ('"command": "x", "args": "y"', "expected a list of strings, got a string", "args"),
        ('"command": "x", "args": ["y", 8080]', "expected a string, got a number", "args[1]"),
        ('"command": "x", "env": ["A"]', "expected an object with strings in it, got a list", "env"),
        ('"command": "x", "env": {"A": true}', "expected a string, got true", "env.A"),
        ('"command": "x", "env": {"": "1"}', "a variable cannot have this name or value", "env.''"),
        ('"command": "x", "env": {"A=": "1"}', "a variable cannot have this name or value", "env.'A='"),
        ('"command": "x\\u0000"', "a NUL character, which no program can be given", "command"),
        ('"url": "ftp://x"', "expected a URL that starts with http:// or https://", "url"),
        ('"url": "https://x y"', "expected a URL that starts with http:// or https://", "url"),
        ('"url": "https://x", "headers": {"A B": "1"}', "this header cannot be sent", "headers.'A B'"),
        ('"url": "https://x", "headers": {"A": "1\\r\\nB: 2"}', "this header cannot be sent", "headers.A"),
        ('"command": "x", "disabled": "no"', "expected true or false, got a string", "disabled"),
        ('"command": "x", "includeTools": "y"', "expected a list of strings, got a string", "includeTools"),
    ],
)
def test_a_wrong_value_stops_its_server_and_says_why(
    read: Callable[..., Config], body: str, message: str, path: str
) -> None:
    config = read(entry(body))
    assert config.servers == ()
    (problem,) = config.problems
    assert problem.where is not None
    assert (problem.message, problem.where.path) == (message, f"mcpServers.fs.{path}")


def test_a_value_with_a_line_break_from_a_variable_is_no_header(read: Callable[..., Config]) -> None:
    config = read(entry('"url": "https://x", "headers": {"A": "${A}"}'), A="hush\nB: 2")
    (problem,) = config.problems
    assert "hush" not in problem.render()


def test_a_misspelled_key_is_a_warning(read: Callable[..., Config]) -> None:
    config = read(entry('"command": "x", "argss": ["y"]'))
    assert config.servers
    (problem,) = config.problems
    assert (problem.code, problem.severity) == ("C106", "warning")
    assert str(problem) == "plait.json:2:24: unknown field 'argss'. Did you mean 'args'?"


def test_keys_of_other_programs_are_passed_over(read: Callable[..., Config]) -> None:
    body = '"command": "x", "timeout": 9000, "trust": true, "alwaysAllow": [], "tags": ["a"], "gallery": 1'
    config = read(entry(body))
    assert not config.problems
    assert one(config).settings.timeout == 60.0


def test_an_env_file_is_not_read_and_that_is_told(read: Callable[..., Config]) -> None:
    config = read(entry('"command": "x", "envFile": ".env"'))
    assert config.servers
    (problem,) = config.problems
    assert (problem.code, problem.severity) == ("C111", "warning")


def test_an_entry_that_is_no_object_is_a_problem(read: Callable[..., Config]) -> None:
    (problem,) = read('{"mcpServers": {"fs": "npx"}}').problems
    assert str(problem) == "plait.json:1:23: expected an object, got a string"


def test_a_server_needs_a_name(read: Callable[..., Config]) -> None:
    config = read('{"mcpServers": {"": {"command": "x"}}}')
    assert config.servers == ()
    assert [problem.message for problem in config.problems] == ["a server without a name"]


def test_an_object_of_a_python_package_is_a_server(read: Callable[..., Config]) -> None:
    config = read(
        entry('"type": "python", "module": "pkg.mod:${NAME}", "plait": {"timeout": 5}'), NAME="server"
    )
    assert not config.problems
    server = one(config)
    assert server == PythonServer(
        name="fs", module="pkg.mod:server", settings=ServerSettings(timeout=5.0), where=server.where
    )
    assert str(server.where) == "plait.json:2:1"


@pytest.mark.parametrize(
    "module", ["notes", "notes:", ":server", "notes:a b", "a/b.py:server", "a..b:c", "a:b:c", "a:b.c", ""]
)
def test_a_module_without_an_object_is_a_problem(read: Callable[..., Config], module: str) -> None:
    config = read(entry(f'"type": "python", "module": "{module}"'))
    assert config.servers == ()
    (problem,) = config.problems
    assert problem.where is not None
    assert (problem.code, problem.message, problem.where.path, problem.hints) == (
        "C107",
        "expected a module and an object in it",
        "mcpServers.fs.module",
        ('write "module": "package.module:object"',),
    )


def test_a_python_server_needs_a_module(read: Callable[..., Config]) -> None:
    (problem,) = read(entry('"type": "python", "url": "https://x.example"')).problems
    assert (problem.code, problem.message) == ("C108", "server 'fs' has no module")


def test_a_module_needs_the_type_that_says_so(read: Callable[..., Config]) -> None:
    (problem,) = read(entry('"module": "notes:server"')).problems
    assert (problem.code, problem.hints) == ("C108", ('a Python object needs "type": "python" too',))


def test_what_a_variable_holds_is_not_told_with_a_module_that_is_none(read: Callable[..., Config]) -> None:
    (problem,) = read(entry('"type": "python", "module": "${A}"'), A="hush").problems
    assert "hush" not in problem.render()
