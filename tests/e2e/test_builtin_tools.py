"""The tools we ship, served without any file to the official client, in a workspace of their own (FR-005)."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from gateway import PATIENCE, Gateway, Message, text_of, write_config
from peers import connected
from witness import Witness

pytestmark = pytest.mark.e2e

TOOLS = [
    *("read_file", "write_file", "edit_file", "list_directory", "search_files", "exec_shell", "web_fetch"),
    *("memory_read", "memory_write", "memory_search", "echo"),
]


class Workshop:
    """A workspace, and folders of its own for what plait keeps."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.workspace.mkdir()
        self.state = folder / "state"
        self.environ = {"XDG_STATE_HOME": str(self.state), "XDG_CACHE_HOME": str(folder / "cache")}

    @asynccontextmanager
    async def client(self, config: Path | None = None) -> AsyncIterator["Hand"]:
        arguments = ["-m", "plait", "mcp-server", *([] if config is None else ["-c", str(config)])]
        parameters = StdioServerParameters(
            command=sys.executable, args=arguments, env=self.environ, cwd=self.workspace
        )
        async with asyncio.timeout(2 * PATIENCE), connected(parameters, Witness()) as client:
            yield Hand(client)

    def gateway(self, *configs: Path) -> Gateway:
        return Gateway(*configs, environ={**os.environ, **self.environ}, cwd=self.workspace)

    def plait(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "plait", *arguments],
            capture_output=True,
            text=True,
            cwd=self.workspace,
            env={**os.environ, **self.environ},
            timeout=60,
            check=False,
        )


class Hand:
    """Calls our tools through the official client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.called: set[str] = set()

    async def call(self, tool: str, **arguments: object) -> types.CallToolResult:
        self.called.add(tool)
        result = await self.client.call_tool(f"builtin__{tool}", arguments)
        assert isinstance(result, types.CallToolResult)
        return result

    async def say(self, tool: str, **arguments: object) -> str:
        """The text of a call that succeeds."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, result
        return words(result)

    async def refused(self, tool: str, **arguments: object) -> str:
        """The text of a call that fails."""
        result = await self.call(tool, **arguments)
        assert result.is_error, result
        return words(result)


def words(result: types.CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, types.TextContent))


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


# ---- FR-005


@pytest.mark.requirement("S1-014", "S1-005", "S1-008")
async def test_without_a_file_the_official_client_lists_and_calls_our_tools(workshop: Workshop) -> None:
    (workshop.workspace / "note.txt").write_text("one\ntwo\nthré 😀\n")
    async with workshop.client() as hand:
        listed = (await hand.client.list_tools()).tools
        assert [tool.name for tool in listed] == [f"builtin__{name}" for name in TOOLS]
        for tool in listed:
            assert tool.description
            assert tool.input_schema["type"] == "object"
            properties = tool.input_schema["properties"]
            assert all(each.get("description") for each in properties.values()), tool.name
        assert await hand.say("read_file", path="note.txt") == "one\ntwo\nthré 😀\n"
        assert (await hand.say("read_file", path="note.txt", offset=2, limit=1)).startswith("two\n")
        assert await hand.say("read_file", path=str(workshop.workspace / "note.txt"), offset=3) == "thré 😀\n"


async def test_every_tool_does_what_it_is_for(workshop: Workshop) -> None:
    async with workshop.client() as hand:
        assert (
            await hand.say("write_file", path="src/a.py", content="x = 1\ny = 2\n")
            == "created 'src/a.py': 12 bytes"
        )
        assert await hand.say("edit_file", path="src/a.py", old_text="y = 2", new_text="y = 3") == (
            "edited 'src/a.py' at line 2"
        )
        assert (workshop.workspace / "src/a.py").read_text() == "x = 1\ny = 3\n"
        assert await hand.say("list_directory") == "src/"
        assert await hand.say("list_directory", path="src") == "a.py (12 bytes)"
        assert await hand.say("search_files", text="y = ", pattern="*.py") == "src/a.py:2: y = 3"
        assert await hand.say("search_files", pattern="a.*") == "src/a.py"
        assert await hand.say("read_file", path="src/a.py") == "x = 1\ny = 3\n"
        ran = json.loads(await hand.say("exec_shell", argv=["cat", "a.py"], cwd="src"))
        assert (ran["exit_code"], ran["stdout"], ran["stderr"]) == (0, "x = 1\ny = 3\n", "")
        assert await hand.say("memory_write", content="the milk is in the fridge") == "remembered as note 1"
        assert "the milk is in the fridge" in await hand.say("memory_search", query="milk")
        assert "the milk is in the fridge" in await hand.say("memory_read", note=1)
        assert await hand.say("echo", text="hi") == "hi"
        assert "URL rejected" in await hand.refused("web_fetch", url="http://127.0.0.1/")
        assert hand.called == set(TOOLS), "and this is all of them"


async def test_what_is_remembered_outlives_the_conversation(workshop: Workshop) -> None:
    async with workshop.client() as hand:
        await hand.say("memory_write", content="the cat is called Mia")
    async with workshop.client() as hand:
        assert "Mia" in await hand.say("memory_search", query="cat")


@pytest.mark.parametrize("arguments", [None, {}])
async def test_no_arguments_and_null_are_an_empty_object(workshop: Workshop, arguments: object) -> None:
    async with workshop.gateway() as gateway:
        await gateway.shake_hands()
        params: Message = {"name": "builtin__list_directory", "arguments": arguments}
        assert text_of(await gateway.request("tools/call", params)) == "[empty]"
        del params["arguments"]
        assert text_of(await gateway.request("tools/call", params)) == "[empty]"


# ---- commands


@pytest.mark.requirement("S1-AC15", "S1-T7.9")
@pytest.mark.parametrize(
    "how",
    [{"argv": ["ls", "-a"]}, {"command": "ls -a"}, {"command": "'ls' \"-a\""}],
    ids=["argv", "text", "quoted"],
)
async def test_a_plain_command_is_run_without_a_shell(workshop: Workshop, how: Mapping[str, object]) -> None:
    (workshop.workspace / "$(id)").write_text("")
    async with workshop.client() as hand:
        result = await hand.call("exec_shell", **how)
    assert result.structured_content is not None
    assert result.structured_content["stdout"] == "$(id)\n.\n..\n"
    assert json.loads(words(result)) == result.structured_content


@pytest.mark.requirement("S1-AC15", "S1-T7.8")
async def test_a_command_that_is_not_allowed_is_refused_in_words_and_nothing_happens(
    workshop: Workshop,
) -> None:
    (workshop.workspace / "precious").write_text("x")
    attempts: list[dict[str, object]] = [
        {"command": "rm -rf /"},
        {"argv": ["rm", "precious"]},
        {"command": "cat precious; rm precious"},
        {"command": "echo `rm precious`"},
        {"command": "ls\nrm precious"},
        {"argv": ["sh", "-c", "rm precious"]},
        {"argv": ["find", ".", "-delete"]},
        {"argv": ["env", "rm", "precious"]},
        {"command": "echo x > precious"},
        {"argv": []},
        {"command": ""},
    ]
    async with workshop.client() as hand:
        for attempt in attempts:
            told = await hand.refused("exec_shell", **attempt)
            assert "denied[P002]: permission denied for tool 'builtin__exec_shell': command rejected:" in told
        assert "either argv or command" in await hand.refused("exec_shell")
        assert "not a folder in the workspace" in await hand.refused("exec_shell", argv=["ls"], cwd="..")
    assert (workshop.workspace / "precious").read_text() == "x"


# ---- URLs


@pytest.mark.requirement("S1-AC15")
async def test_a_loopback_address_is_refused_by_the_policy_and_nobody_is_connected_to(
    workshop: Workshop,
) -> None:
    visits = 0

    def visited(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal visits
        visits += 1
        writer.close()

    server = await asyncio.start_server(visited, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, workshop.client() as hand:
        for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "127.0.0.1."):
            told = await hand.refused("web_fetch", url=f"http://{host}:{port}/")
            assert "permission denied for tool 'builtin__web_fetch': URL rejected" in told, host
        assert "URL rejected" in await hand.refused("web_fetch", url="file:///etc/passwd")
    assert visits == 0


# ---- paths


async def test_a_path_outside_the_workspace_is_refused_for_every_file_tool(workshop: Workshop) -> None:
    outside = workshop.workspace.parent / "workspace-sibling"
    outside.mkdir()
    (outside / "secret").write_text("do not read this")
    (workshop.workspace / "link").symlink_to(outside)
    async with workshop.client() as hand:
        for path in (str(outside / "secret"), "../workspace-sibling/secret", "link/secret", "/etc/passwd"):
            attempts = [
                await hand.refused("read_file", path=path),
                await hand.refused("write_file", path=path, content="x"),
                await hand.refused("edit_file", path=path, old_text="do", new_text="x"),
                await hand.refused("list_directory", path=os.path.dirname(path)),
                await hand.refused("search_files", text="do", path=os.path.dirname(path)),
            ]
            for told in attempts:
                assert "permission denied" in told
                assert "outside the workspace" in told
                assert "do not read this" not in told
    assert (outside / "secret").read_text() == "do not read this"
    assert [path.name for path in outside.iterdir()] == ["secret"]


# ---- large results


async def follow(client: Client, uri: str) -> tuple[str, int]:
    """Everything behind a link, and in how many pages it came."""
    texts: list[str] = []
    following: str | None = uri
    while following is not None:
        page, *more = (await client.read_resource(following)).contents
        assert isinstance(page, types.TextResourceContents)
        assert len(page.text.encode()) <= 65_536
        texts.append(page.text)
        following = str(more[0].uri) if more else None
    return "".join(texts), len(texts)


@pytest.mark.requirement("S1-AC17", "G25", "S1-024")
@pytest.mark.parametrize("size", [70_000, 10_000_000])
async def test_a_large_result_is_cut_and_the_rest_is_read_in_pages(workshop: Workshop, size: int) -> None:
    line = "größer als die Hälfte 😀 \n"
    content = line * (size // len(line.encode()))
    (workshop.workspace / "large.txt").write_text(content)
    async with workshop.client() as hand:
        result = await hand.call("read_file", path="large.txt")
        assert not result.is_error
        text, link = result.content
        assert isinstance(text, types.TextContent)
        assert isinstance(link, types.ResourceLink)
        kept = text.text.removesuffix("\n[truncated]")
        assert kept != text.text
        assert content.startswith(kept)
        assert 65_536 - 4 < len(kept.encode()) <= 65_536
        assert link.size == len(content.encode())
        whole, pages = await follow(hand.client, str(link.uri))
        assert whole == content
        assert pages >= 2
        with pytest.raises(MCPError, match="not found"):
            await hand.client.read_resource(str(link.uri)[:-1] + "~")


async def test_the_output_of_a_command_is_cut_like_any_other_result(workshop: Workshop) -> None:
    (workshop.workspace / "large.txt").write_text("0123456789\n" * 20_000)
    async with workshop.client() as hand:
        result = await hand.call("exec_shell", argv=["cat", "large.txt"])
        size = len(words(result).encode())
        if result.structured_content is not None:
            size += len(json.dumps(result.structured_content).encode())
        assert size <= 65_536 + len("\n[truncated]") * 2
        links = [block for block in result.content if isinstance(block, types.ResourceLink)]
        assert links
        whole, _ = await follow(hand.client, str(links[0].uri))
        assert json.loads(whole)["exit_code"] == 0


@pytest.mark.requirement("S1-T7.21")
async def test_the_limit_is_the_files_own_and_a_tool_reads_the_rest_where_it_is_asked_for(
    workshop: Workshop, tmp_path: Path
) -> None:
    (workshop.workspace / "large.txt").write_text("x" * 500)
    settings = {"builtin": True, "results": {"maxBytes": 100, "tool": True}}
    config = write_config(tmp_path / "plait.json", {}, settings)
    async with workshop.gateway(config) as gateway:
        await gateway.shake_hands()
        answer = await gateway.call("builtin__read_file", {"path": "large.txt"})
        text, link = content_of(answer)
        assert text["text"] == "x" * 100 + "\n[truncated]"
        rest = await gateway.call("plait-results__read_result", {"id": link["uri"]})
        assert text_of(rest) == "x" * 500


def content_of(answer: Message) -> list[Message]:
    result = answer["result"]
    assert isinstance(result, dict)
    content = result["content"]
    assert isinstance(content, list)
    return content


# ---- rules of a file


@pytest.mark.requirement("S0-19", "S1-049", "K-03")
async def test_rules_in_a_file_deny_by_arguments_and_hide_what_can_never_be_called(
    workshop: Workshop, tmp_path: Path
) -> None:
    config = tmp_path / "plait.json"
    config.write_text(
        """{"plait": {"builtin": true, "rules": [
          {"deny": "builtin__write_file", "unless": {"path": "drafts/*"}, "reason": "read-only project"},
          {"deny": "exec_shell"},
          {"deny": "builtin__memory_*"}
        ]}}"""
    )
    async with workshop.client(config) as hand:
        shown = [tool.name.removeprefix("builtin__") for tool in (await hand.client.list_tools()).tools]
        assert shown == [name for name in TOOLS if name != "exec_shell" and not name.startswith("memory")]
        assert await hand.say("write_file", path="drafts/a", content="x") == "created 'drafts/a': 1 bytes"
        denied = await hand.refused("write_file", path="notes/a", content="x")
        assert denied.startswith(f"denied[P001]: builtin__write_file by rule 1 ({config}:2")
        assert "read-only project" in denied
        assert "argument path='notes/a' is not like drafts/*" in denied
        assert "denied[P001]" in await hand.refused("write_file", path="drafts/../notes/a", content="x")
        assert "denied[P001]" in await hand.refused("write_file", content="x")
        for hidden in ("exec_shell", "memory_read"):
            told = await hand.refused(hidden, argv=["ls"])
            assert told.startswith(f"unknown tool 'builtin__{hidden}'. Did you mean ")
            assert not any(
                f"{each} " in f"{told} " for each in ("exec_shell", "memory_write", "memory_search")
            )
    assert [path.name for path in workshop.workspace.iterdir()] == ["drafts"]


async def test_a_file_has_our_tools_only_where_it_says_so(workshop: Workshop, tmp_path: Path) -> None:
    config = write_config(tmp_path / "plait.json", {})
    async with workshop.client(config) as hand:
        assert (await hand.client.list_tools()).tools == []
        assert "unknown tool" in await hand.refused("read_file", path="x")


async def test_the_workspace_is_the_one_that_the_file_names(workshop: Workshop, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "there.txt").write_text("here")
    settings = {"builtin": True, "workspace": str(other)}
    async with workshop.client(write_config(tmp_path / "plait.json", {}, settings)) as hand:
        assert await hand.say("read_file", path="there.txt") == "here"
        assert json.loads(await hand.say("exec_shell", argv=["pwd"]))["stdout"] == f"{other}\n"


# ---- the audit


@pytest.mark.requirement("S1-T7.12", "S1-048", "K-08")
async def test_the_audit_has_every_call_is_whole_and_holds_no_value_of_an_argument(
    workshop: Workshop, tmp_path: Path
) -> None:
    canary = "plover-2718281828"
    settings = {"builtin": True, "rules": [{"deny": "builtin__edit_file", "unless": {"path": "a/*"}}]}
    config = write_config(tmp_path / "plait.json", {}, settings)
    async with workshop.client(config) as hand:
        await hand.say("write_file", path=f"{canary}.txt", content=canary)
        await hand.say("read_file", path=f"{canary}.txt")
        await hand.refused("read_file", path=f"../{canary}")
        await hand.refused("edit_file", path=f"b/{canary}", old_text=canary, new_text=canary)
        await hand.say("exec_shell", argv=["echo", canary])
        await hand.refused("exec_shell", command=f"{canary} {canary}")
        await hand.refused("web_fetch", url=f"http://127.0.0.1/{canary}", headers={"X-Key": canary})
        await hand.say("memory_write", content=canary)
        await hand.say("memory_search", query=canary)
        await hand.refused("no_such_tool", argument=canary)
    verified = workshop.plait("audit", "verify", "-c", str(config))
    assert (verified.returncode, verified.stderr) == (0, "")
    assert "all there and unaltered" in verified.stdout
    records = [json.loads(line) for line in workshop.plait("audit", "export").stdout.splitlines()]
    intents = [each["name"] for each in records if each.get("phase") == "intent"]
    outcomes = [each for each in records if each.get("phase") == "outcome"]
    assert [(each["name"].removeprefix("builtin__"), each["outcome"]) for each in outcomes] == [
        ("write_file", "ok"),
        ("read_file", "ok"),
        ("read_file", "tool_error"),
        ("edit_file", "denied"),
        ("exec_shell", "ok"),
        ("exec_shell", "denied"),
        ("web_fetch", "denied"),
        ("memory_write", "ok"),
        ("memory_search", "ok"),
        ("no_such_tool", "tool_error"),
    ]
    assert intents == [each["name"] for each in outcomes]
    assert all(each["duration_us"] > 0 for each in outcomes)
    assert outcomes[3]["rule"].startswith("rule 1")
    stored = b"".join(path.read_bytes() for path in (workshop.state / "plait" / "audit").iterdir())
    assert b"builtin__write_file" in stored
    assert canary.encode() not in stored


@pytest.mark.requirement("S1-T7.12")
async def test_a_record_that_is_altered_is_noticed(workshop: Workshop) -> None:
    async with workshop.client() as hand:
        await hand.say("echo", text="hi")
    [path] = (workshop.state / "plait" / "audit").glob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"builtin__echo", b"builtin__ecco"))
    assert workshop.plait("audit", "verify").returncode == 1
