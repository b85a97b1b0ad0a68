"""Files: their shapes, several at once, and those of which nothing can be used."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from plait.config import Config, ConfigFileError, HttpServer, Settings, StdioServer, load
from plait.config.delegation import DelegationConfig
from plait.errors import ConfigError

SHAPES = Path(__file__).parent / "shapes"


def shape(name: str, **environ: str) -> Config:
    return load([SHAPES / f"{name}.json"], environ, "/srv/project")


def stdio(config: Config, name: str) -> StdioServer:
    (server,) = (server for server in config.servers if server.name == name)
    assert isinstance(server, StdioServer)
    return server


def http(config: Config, name: str) -> HttpServer:
    (server,) = (server for server in config.servers if server.name == name)
    assert isinstance(server, HttpServer)
    return server


@pytest.mark.requirement("S1-AC10")
def test_a_file_of_claude_desktop() -> None:
    config = shape("claude_desktop")
    assert not config.problems
    assert stdio(config, "filesystem").args[-1] == "/home/ada/notes"
    assert stdio(config, "tickets").env == {"TICKETS_TOKEN": "literal-token"}


@pytest.mark.requirement("S1-AC10")
def test_a_file_of_claude_code() -> None:
    config = shape("claude_code", ISSUES_TOKEN="t")
    assert not config.problems
    assert [server.name for server in config.servers] == ["memory", "issues", "feed", "local"]
    assert http(config, "issues").url == "https://issues.example/mcp"
    assert http(config, "issues").headers == {"Authorization": "Bearer t"}
    assert http(config, "feed").transport == "sse"


@pytest.mark.requirement("S1-AC10")
def test_a_file_of_cursor() -> None:
    config = shape("cursor", SEARCH_KEY="k")
    assert [problem.code for problem in config.problems] == ["C111"]
    assert stdio(config, "database").cwd == "/srv/project/db"
    assert http(config, "search").headers == {"X-Api-Key": "k"}
    assert http(config, "search").transport is None
    assert http(config, "typed").transport == "http"


@pytest.mark.requirement("S1-AC10")
def test_a_file_of_vs_code() -> None:
    config = shape("vscode", HOME="/home/ada")
    assert stdio(config, "browser").args[-1] == "/srv/project"
    assert stdio(config, "browser").env == {"LEVEL": "3", "HOME_FOLDER": "/home/ada"}
    assert http(config, "docs").transport == "http"
    assert [(problem.code, problem.server) for problem in config.problems] == [("C105", "asks")]


@pytest.mark.requirement("S1-AC10")
def test_a_file_of_gemini() -> None:
    config = shape("gemini")
    assert not config.problems
    local = stdio(config, "local")
    assert (local.cwd, local.settings.timeout) == ("/srv/project/servers", 60.0)
    assert (local.settings.tools, local.settings.hidden_tools) == (("read_*", "search"), ("read_secret",))
    assert http(config, "remote").transport == "http"
    assert http(config, "events").transport is None


@pytest.mark.requirement("S1-025", "S1-AC10")
@pytest.mark.parametrize("key", ["mcpServers", "mcp_servers"])
def test_a_file_of_the_seed(read: Callable[..., Config], key: str) -> None:
    config = read((SHAPES / "seed.json").read_text().replace("mcp_servers", key))
    assert not config.problems
    assert stdio(config, "claude").args == ("mcp", "serve")
    assert stdio(config, "flow").command == "npx"
    assert http(config, "far").url == "https://far.example/mcp"
    delegation = DelegationConfig(claude_enabled=True, max_turns=5, excluded_tools=("exec_shell",))
    assert config.delegation == delegation


@pytest.mark.requirement("S1-028")
def test_without_a_delegation_section_there_is_none(read: Callable[..., Config]) -> None:
    config = read('{"tools": {"mcpServers": {"claude": {"command": "claude"}}}}')
    assert config.delegation == DelegationConfig()
    assert stdio(config, "claude").command == "claude"


def test_delegation_may_stand_under_our_own_key(read: Callable[..., Config]) -> None:
    assert read('{"plait": {"delegation": {"max_turns": 3}}}').delegation.max_turns == 3


def test_a_delegation_that_is_no_object_is_a_problem(read: Callable[..., Config]) -> None:
    config = read('{"delegation": true}')
    assert config.delegation == DelegationConfig()
    assert [problem.message for problem in config.problems] == ["expected an object, got true"]


@pytest.mark.requirement("S1-E1")
@pytest.mark.parametrize(
    "text", ["{}", '{"mcpServers": {}}', '{"mcpServers": null}', '{"tools": {}}', '{"a": 1}']
)
def test_no_servers_are_no_error(read: Callable[..., Config], text: str) -> None:
    assert read(text) == Config(files=("plait.json",))


@pytest.mark.requirement("S1-E1")
def test_no_file_is_no_error() -> None:
    assert load([], {}) == Config()


def test_a_broken_server_leaves_the_others_alone(read: Callable[..., Config]) -> None:
    servers: dict[str, object] = {
        "a": {"command": "x"},
        "b": {"command": "${UNSET}"},
        "c": 7,
        "d": {},
        "e": {"command": "x", "plait": {"zzz": 1}},
        "f": {"url": "https://x.example"},
    }
    config = read(json.dumps({"mcpServers": servers}))
    assert [server.name for server in config.servers] == ["a", "f"]
    assert [problem.server for problem in config.problems] == ["b", "c", "d", "e"]


def test_servers_under_two_keys_of_one_file_are_all_there(read: Callable[..., Config]) -> None:
    config = read('{"mcpServers": {"a": {"command": "x"}}, "servers": {"b": {"command": "y"}}}')
    assert [server.name for server in config.servers] == ["a", "b"]


def test_servers_that_are_no_object_are_a_problem(read: Callable[..., Config]) -> None:
    (problem,) = read('{"mcpServers": [{"name": "a"}]}').problems
    assert str(problem) == "plait.json:1:16: expected an object with servers in it, got a list"


def test_a_misspelled_key_for_servers_is_told(read: Callable[..., Config]) -> None:
    (problem,) = read('{"mcpServer": {"a": {"command": "x"}}}').problems
    assert (problem.severity, str(problem)) == (
        "warning",
        "plait.json:1:2: unknown field 'mcpServer'. Did you mean 'mcpServers'?",
    )


class TestSeveralFiles:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    def load(self, *texts: str) -> Config:
        files = [f"{number}.json" for number in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            Path(file).write_text(text)
        return load(files, {})

    def test_the_later_one_wins_and_both_places_are_told(self) -> None:
        config = self.load(
            '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "old"}}}',
            '{"servers": {\n "b": {"command": "new"}, "c": {"command": "z"}}}',
        )
        assert [server.name for server in config.servers] == ["a", "b", "c"]
        assert stdio(config, "b").command == "new"
        (problem,) = config.problems
        assert (problem.code, problem.severity, problem.server) == ("C109", "warning", "b")
        assert str(problem) == "1.json:2:2: server 'b' is defined here and at 0.json:1:40"
        assert config.files == ("0.json", "1.json")

    def test_what_is_wrong_with_an_entry_that_is_not_used_does_not_matter(self) -> None:
        config = self.load('{"servers": {"a": {}}}', '{"servers": {"a": {"command": "x"}}}')
        assert [problem.severity for problem in config.problems] == ["warning"]

    def test_a_later_file_can_switch_a_server_off(self) -> None:
        config = self.load('{"servers": {"a": {"command": "x"}}}', '{"servers": {"a": {"disabled": true}}}')
        assert config.servers == ()

    def test_settings_add_up(self) -> None:
        config = self.load(
            '{"plait": {"name": "x", "separator": "_"}, "delegation": {"max_turns": 1}}',
            '{"plait": {"separator": "."}}',
        )
        delegation = DelegationConfig(max_turns=1)
        assert config.settings == Settings(name="x", separator=".", delegation=delegation)


class TestFilesThatCannotBeUsed:
    def refusal(self, path: Path | str) -> str:
        with pytest.raises(ConfigError) as caught:
            load([path], {})
        assert isinstance(caught.value, ConfigFileError)
        return str(caught.value)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        path = tmp_path / "none.json"
        assert self.refusal(path) == f"cannot read {path}: no such file or directory"

    def test_a_folder(self, tmp_path: Path) -> None:
        assert self.refusal(tmp_path) == f"cannot read {tmp_path}: is a directory"

    def test_a_name_that_no_file_can_have(self) -> None:
        assert "cannot read" in self.refusal("a\0b")

    def test_a_file_that_never_ends(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.modules[load.__module__], "MAX_FILE_BYTES", 10)
        path = tmp_path / "big.json"
        path.write_bytes(b"{}" + b" " * 9)
        assert self.refusal(path) == f"cannot read {path}: it has more than 10 bytes"

    def test_a_file_that_is_not_json(self, tmp_path: Path) -> None:
        path = tmp_path / "plait.json"
        path.write_text('{\n  "a": 1\n  "b": 2\n}')
        assert self.refusal(path) == f"{path}:3:3: missing ',' between entries"

    def test_a_file_that_is_not_utf_8(self, tmp_path: Path) -> None:
        path = tmp_path / "plait.json"
        path.write_bytes(b'{\n  "\xc3\xa9\xff"}')
        assert self.refusal(path) == f"{path}:2:5: not UTF-8"

    @pytest.mark.parametrize(("text", "got"), [(" [1]", "a list"), (' "x"', "a string"), (" null", "null")])
    def test_a_root_that_is_no_object(self, tmp_path: Path, text: str, got: str) -> None:
        path = tmp_path / "plait.json"
        path.write_text(text)
        assert self.refusal(path) == f"{path}:1:2: expected an object, got {got}"


def test_a_current_folder_that_was_removed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match="the current folder does not exist any more"):
        load([], {})


def test_one_name_in_place_of_a_list_is_one_file(tmp_path: Path) -> None:
    path = tmp_path / "plait.json"
    path.write_bytes(b"\xef\xbb\xbf{}")
    assert load(str(path), {}).files == (str(path),)


def test_reading_a_configuration_imports_nothing_heavy() -> None:
    program = "import sys, plait.config; plait.config.load([], {}); print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, timeout=60, text=True
    )
    heavy = {"pydantic", "asyncio", "json", "pathlib", "difflib", "shutil", "subprocess", "urllib", "logging"}
    assert not heavy & {*run.stdout.split()}
