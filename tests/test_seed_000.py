"""The shell of seed 000, by its own test names, in the form that the decisions give them.

Each drives a Connection line by line and sees everything that is written back.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable

import pytest
from msgspec.json import decode

from clients import PATIENCE, RawClient, compositor, error_of, result_of
from fakes import FakeServer, Message, text, words
from plait.downstream.stdio import StdioClient
from plait.wire.framing import as_line


def greeter() -> FakeServer:
    """The seed's mock provider: one namespace, one tool."""
    server = FakeServer("test", tools=[{"name": "greet", "description": "Greets.", "inputSchema": {}}])
    server.answers["tools/call"] = lambda params: text(f"called {params['name']}")
    return server


def initialize(id: int = 1) -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"initialize","params":{}}' % id


INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


async def talk(*lines: bytes) -> list[Message]:
    """Say these lines, and return all that was answered once everything is."""
    async with compositor(greeter()) as made, RawClient(made) as client:
        for line in lines:
            client.connection.receive(line)
        await client.answered()
        return client.messages


@pytest.mark.requirement("S0-T11", "S0-14")
async def test_initialize_handshake() -> None:
    [answer] = await talk(initialize())
    result = result_of(answer)
    assert answer["id"] == 1
    assert isinstance(result["protocolVersion"], str)
    assert "tools" in result["capabilities"]  # type: ignore[operator]
    assert result["serverInfo"]["name"] == "plait"  # type: ignore[index]


@pytest.mark.requirement("S0-T12", "S0-16")
async def test_not_initialized_rejection() -> None:
    [answer] = await talk(b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}')
    assert error_of(answer)["code"] == -32002
    assert "not initialized" in str(error_of(answer)["message"])


@pytest.mark.requirement("S0-T13", "S0-15")
async def test_tools_list_returns_tools() -> None:
    answers = await talk(
        initialize(), INITIALIZED, b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}'
    )
    assert len(answers) == 2, "one for initialize, one for the list, none for the notification"
    tool = {"name": "test__greet", "description": "Greets.", "inputSchema": {}}
    assert result_of(answers[1]) == {"tools": [tool]}


@pytest.mark.requirement("S0-T14")
async def test_tools_call_routes_correctly() -> None:
    call = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"test__greet","arguments":{}}}'
    answers = await talk(initialize(), call)
    assert words(result_of(answers[1])) == "called greet"
    assert result_of(answers[1]).get("isError", False) is False


@pytest.mark.requirement("S0-T15", "S0-19")
async def test_tools_call_not_found() -> None:
    call = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"test__nope"}}'
    answers = await talk(initialize(), call)
    assert result_of(answers[1])["isError"] is True
    assert "test__nope" in words(result_of(answers[1]))


@pytest.mark.requirement("S0-T16", "S0-20")
async def test_unknown_method_returns_error() -> None:
    answers = await talk(initialize(), b'{"jsonrpc":"2.0","id":2,"method":"foo/bar","params":{}}')
    assert error_of(answers[1])["code"] == -32601
    assert "foo/bar" in str(error_of(answers[1])["message"])


@pytest.mark.requirement("S0-T17", "S0-15", "S0-22")
async def test_notification_produces_no_response() -> None:
    assert await talk(INITIALIZED) == []
    unknown = b'{"jsonrpc":"2.0","method":"made/up","params":{}}'
    request_without_id = b'{"jsonrpc":"2.0","method":"tools/list"}'
    assert len(await talk(unknown, request_without_id, initialize(), INITIALIZED, unknown)) == 1


@pytest.mark.requirement("S0-T18", "S0-21")
async def test_malformed_json_returns_parse_error() -> None:
    # Decision 3: -32700 for what is no JSON; the seed's -32600 is for JSON that is no message.
    malformed, no_message = await talk(b"{ this is no JSON }", b'{"foo":1}')
    assert (malformed["id"], error_of(malformed)["code"]) == (None, -32700)
    assert (no_message["id"], error_of(no_message)["code"]) == (None, -32600)


FULL_SESSION = [
    initialize(1),
    INITIALIZED,
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}',
    b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"test__greet","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":4,"method":"unknown/method","params":{}}',
]


def check_full_session(answers: list[Message]) -> None:
    by_id = {answer["id"]: answer for answer in answers}
    assert (len(answers), sorted(by_id, key=str)) == (4, [1, 2, 3, 4])
    assert "serverInfo" in result_of(by_id[1])
    assert len(result_of(by_id[2])["tools"]) == 1  # type: ignore[arg-type]
    assert words(result_of(by_id[3])) == "called greet"
    assert error_of(by_id[4])["code"] == -32601


@pytest.mark.requirement("S0-T23")
async def test_full_session_flow() -> None:
    check_full_session(await talk(*FULL_SESSION))


# ---- any reader and writer


async def over_pipes(spoken: bytes) -> list[Message]:
    """Say all of it on our stdin, close it, and read what came out of our stdout."""
    ours_in, theirs_out = os.pipe()
    theirs_in, ours_out = os.pipe()
    with os.fdopen(theirs_in, "rb") as heard:
        os.write(theirs_out, spoken)
        os.close(theirs_out)
        async with asyncio.timeout(PATIENCE), compositor(greeter()) as made:
            client = StdioClient(ours_in, ours_out)
            await client.open_output()
            connection = made.connect(client)
            await client.serve(connection)
            await connection.finish(PATIENCE)
            await made.disconnect(connection)
            await client.aclose()
        return [decode(line) for line in heard]


class StreamWriter:
    """asyncio's own stream, as the way to a client."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    def write(self, message: bytes, within: bytes | None = None) -> None:
        self._stream.write(as_line(message))

    def backlog(self) -> int:
        return 0


async def over_a_socket(spoken: bytes) -> list[Message]:
    """The same over one socket, in both directions."""
    theirs, ours = socket.socketpair()
    with theirs:
        theirs.sendall(spoken)
        theirs.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(PATIENCE), compositor(greeter()) as made:
            reader, writer = await asyncio.open_connection(sock=ours)
            connection = made.connect(StreamWriter(writer))
            async for line in reader:
                connection.receive(line)
            await connection.finish(PATIENCE)
            await made.disconnect(connection)
            writer.close()
            await writer.wait_closed()
        return [decode(line) for line in theirs.makefile("rb")]


@pytest.mark.requirement("S0-12", "S0-13", "S0-T23")
@pytest.mark.parametrize("say", [over_pipes, over_a_socket])
async def test_any_pair_of_reader_and_writer_drives_it_until_the_end_of_input(
    say: Callable[[bytes], Awaitable[list[Message]]],
) -> None:
    check_full_session(await say(b"\n".join(FULL_SESSION) + b"\n"))


@pytest.mark.requirement("S0-T19", "S0-23")
async def test_empty_lines_are_skipped() -> None:
    [answer] = await over_pipes(b"\n   \n" + initialize() + b"\n\n \t \r\n")
    assert "serverInfo" in result_of(answer)


@pytest.mark.requirement("S0-13")
async def test_the_end_of_input_alone_is_no_error() -> None:
    assert await over_pipes(b"") == []
