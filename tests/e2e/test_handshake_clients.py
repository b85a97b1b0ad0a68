"""Clients of every handshake revision, pipes and files as clients, and the end of a conversation."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import fastmcp
import mcp
import pytest
from fastmcp.client.transports import StdioTransport
from mcp.client.stdio import StdioServerParameters, stdio_client

from gateway import PATIENCE, Gateway, Message, text_of
from raw_peer import RawPeer

pytestmark = pytest.mark.e2e

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
FINE = {"content": [{"type": "text", "text": "fine"}]}


@pytest.fixture
def peer(tmp_path: Path) -> RawPeer:
    peer = RawPeer(tmp_path)
    peer.says("tools/call", "result", json.dumps(FINE).encode())
    return peer


def request(id: object, method: str, params: Message | None = None) -> Message:
    return {"jsonrpc": "2.0", "id": id, "method": method, **({} if params is None else {"params": params})}


def hello(revision: str = "2025-11-25") -> Message:
    params: Message = {
        "protocolVersion": revision,
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    return request("hello", "initialize", params)


CALL: Message = {"name": "raw__echo", "arguments": {}}
CONVERSATION: list[Message] = [
    hello(),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    request(1, "tools/list"),
    request("two", "tools/call", CALL),
    request(3, "ping"),
    *[request(number, "tools/call", CALL) for number in range(10, 60)],
    request(4, "no/such/method"),
]
ASKED = [message["id"] for message in CONVERSATION if "id" in message]


def as_lines(messages: Sequence[Message], newline: str = "\n") -> bytes:
    return newline.join(json.dumps(message) for message in messages).encode()


def by_id(output: bytes) -> dict[object, Message]:
    """The answers in it, each to another request; notifications may stand between them."""
    answers = [message for message in map(json.loads, output.splitlines()) if "method" not in message]
    found = {message["id"]: message for message in answers}
    assert len(found) == len(answers)
    return found


def check(answers: dict[object, Message]) -> None:
    assert set(answers) == set(ASKED)
    tools = answers[1]["result"]
    assert isinstance(tools, dict)
    assert [tool["name"] for tool in tools["tools"]] == ["raw__echo"]
    assert all(answers[id]["result"] == FINE for id in ("two", *range(10, 60)))
    assert answers[3]["result"] == {}
    assert "error" in answers[4]


# ---- pipes and files as clients


@pytest.mark.parametrize(
    ("newline", "ending"),
    [("\n", b"\n"), ("\n", b""), ("\r\n", b"\r\n\r\n")],
    ids=["newline", "none", "crlf"],
)
@pytest.mark.requirement("S0-13", "S1-D10", "S1-AC9", "S1-AC12", "S1-011")
async def test_everything_piped_in_at_once_is_answered_before_the_end(
    peer: RawPeer, newline: str, ending: bytes
) -> None:
    """`printf '…' | plait mcp-server`: our input has ended before the server behind us has even started."""
    gateway = await asyncio.create_subprocess_exec(
        *command(peer), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE):
        output, _ = await gateway.communicate(as_lines(CONVERSATION, newline) + ending)
    check(by_id(output))
    assert gateway.returncode == 0


async def test_regular_files_serve_as_stdin_and_stdout(peer: RawPeer, tmp_path: Path) -> None:
    """asyncio refuses regular files as pipes; `plait mcp-server < questions > answers` works all the same."""
    questions, answers = tmp_path / "questions", tmp_path / "answers"
    questions.write_bytes(as_lines(CONVERSATION) + b"\n")
    with questions.open("rb") as stdin, answers.open("wb") as stdout:
        gateway = await asyncio.create_subprocess_exec(*command(peer), stdin=stdin, stdout=stdout)
        async with asyncio.timeout(PATIENCE):
            await gateway.wait()
    check(by_id(answers.read_bytes()))
    assert gateway.returncode == 0


async def test_nothing_at_all_as_input_ends_without_a_word(peer: RawPeer) -> None:
    gateway = await asyncio.create_subprocess_exec(
        *command(peer), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE):
        output, _ = await gateway.communicate()
    assert output == b""
    assert gateway.returncode == 0


def command(peer: RawPeer) -> list[str]:
    return [sys.executable, "-m", "plait", "mcp-server", "-c", str(peer.config())]


# ---- every revision


def agreed(greeting: Message) -> object:
    result = greeting["result"]
    assert isinstance(result, dict)
    return result["protocolVersion"]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.requirement("S0-14", "S1-014", "S1-R1", "X-08", "X-10")
async def test_a_client_of_any_handshake_revision_is_served_in_its_own(peer: RawPeer, revision: str) -> None:
    async with Gateway(peer.config()) as gateway:
        greeting = await gateway.shake_hands(revision=revision)
        assert agreed(greeting) == revision
        assert (await gateway.call("raw__echo"))["result"] == FINE
        assert (await gateway.request("ping"))["result"] == {}
        assert "error" in await gateway.request("initialize", {"protocolVersion": revision})
    (greeted,) = peer.heard("initialize")
    assert f'"protocolVersion":"{revision}"'.encode() in greeted


@pytest.mark.parametrize("revision", ["2024-10-07", "2099-01-01", "2026-07-28", ""])
@pytest.mark.requirement("X-09")
async def test_a_client_of_another_revision_is_offered_the_latest(peer: RawPeer, revision: str) -> None:
    async with Gateway(peer.config()) as gateway:
        greeting = await gateway.shake_hands(revision=revision)
        assert agreed(greeting) == "2025-11-25"


@pytest.mark.requirement("X-53")
async def test_a_batch_is_answered_by_a_batch_in_the_one_revision_that_has_them(peer: RawPeer) -> None:
    batch = [request(1, "tools/call", CALL), request("two", "ping"), request(3, "tools/call", CALL), hello()]
    silent: Message = {"jsonrpc": "2.0", "method": "notifications/unheard-of"}
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands(revision="2025-03-26")
        await gateway.send([*batch, silent])
        answers = {answer["id"]: answer for answer in json.loads(await answer_line(gateway))}
        await gateway.send([silent])
        assert (await gateway.request("ping"))["result"] == {}
    assert set(answers) == {1, "two", 3, "hello"}
    assert answers[1]["result"] == answers[3]["result"] == FINE
    assert answers["two"]["result"] == {}
    assert answers["hello"]["error"]["code"] == -32600


async def answer_line(gateway: Gateway) -> bytes:
    while b'"method"' in (line := await gateway.read_line()):
        continue
    return line


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
@pytest.mark.requirement("X-53")
async def test_a_batch_is_refused_in_every_other_revision(revision: str) -> None:
    async with Gateway() as gateway:
        await gateway.shake_hands(revision=revision)
        await gateway.send([request(1, "ping"), request(2, "ping")])
        refused = await gateway.read()
        assert (await gateway.request("ping"))["result"] == {}
    assert refused["id"] is None
    assert isinstance(refused["error"], dict)
    assert refused["error"]["code"] == -32600


@pytest.mark.parametrize(("revision", "passed"), [("2025-03-26", 2), ("2025-11-25", 0)])
@pytest.mark.requirement("X-53")
async def test_a_batch_of_a_server_is_unpacked_in_the_one_revision_that_has_them(
    peer: RawPeer, revision: str, passed: int
) -> None:
    said: Message = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}
    peer.says("tools/call", "before", json.dumps([said, said]).encode() + b"\n")
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands(revision=revision)
        assert (await gateway.call("raw__echo"))["result"] == FINE
        heard = [message for message in gateway.unread if message["method"] == "notifications/message"]
    assert len(heard) == passed


# ---- the clients that people use


@pytest.fixture
def nowhere() -> Iterator[TextIO]:
    """Where the log of a gateway goes that a client of somebody else's started."""
    with open(os.devnull, "w") as file:
        yield file


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.requirement("S1-014", "S1-AC9")
async def test_the_official_client_lists_and_calls(peer: RawPeer, nowhere: TextIO, mode: str) -> None:
    executable, *arguments = command(peer)
    parameters = StdioServerParameters(command=executable, args=arguments)
    async with mcp.Client(stdio_client(parameters, errlog=nowhere), mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["raw__echo"]
        result = await client.call_tool("raw__echo", {})
    assert [block.model_dump(exclude_none=True) for block in result.content] == FINE["content"]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.requirement("S1-014", "S1-AC9")
async def test_the_client_of_fastmcp_lists_and_calls(peer: RawPeer, nowhere: TextIO, mode: str) -> None:
    executable, *arguments = command(peer)
    transport = StdioTransport(executable, arguments, keep_alive=False, log_file=nowhere)
    async with fastmcp.Client(transport, mode=mode) as client:
        assert [tool.name for tool in await client.list_tools()] == ["raw__echo"]
        result = await client.call_tool("raw__echo", {})
    assert [block.model_dump(exclude_none=True) for block in result.content] == FINE["content"]


# ---- the end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
async def test_a_call_that_runs_when_we_are_told_to_stop_is_answered_first(
    peer: RawPeer, number: signal.Signals
) -> None:
    peer.says(
        "tools/call",
        "before",
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}\n',
    )
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        with peer.gate("tools/call") as gate:
            id = await gateway.ask("tools/call", CALL)
            await gateway.heard("notifications/message")
            gateway.process.send_signal(number)
            gate.open()
            assert text_of(await gateway.answer(id)) == "fine"
        async with asyncio.timeout(PATIENCE):
            assert await gateway.process.wait() == 0


async def test_told_to_stop_while_nothing_runs_we_stop(peer: RawPeer) -> None:
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        assert (await gateway.call("raw__echo"))["result"] == FINE
        gateway.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            assert await gateway.process.wait() == 0
