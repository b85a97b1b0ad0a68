"""A client on a pair of descriptors: pipes, sockets and files."""

import asyncio
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop
from msgspec import Raw

from plait.downstream.connection import Connection
from plait.downstream.stdio import StdioClient
from plait.session.exchange import Exchange, Reply

LINES = b"".join(
    json.dumps(message).encode() + b"\n"
    for message in (
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
    )
)


async def echo(exchange: Exchange) -> Reply:
    return Reply(result=Raw(b'{"tools":[],\n "pretty":true}'))


def connect(client: StdioClient, limit: int = 1000) -> Connection:
    return Connection(
        echo, lambda revision: Raw(b"{}"), client, joined=lambda _: None, told=lambda *_: None, limit=limit
    )


async def serve(input_fd: int, output_fd: int) -> None:
    client = StdioClient(input_fd, output_fd)
    await client.open_output()
    connection = connect(client)
    async with asyncio.timeout(10):
        await client.serve(connection)
        await connection.finish(5)
        await connection.aclose()
        await client.aclose()


def answers(data: bytes) -> list[object]:
    return [json.loads(line)["id"] for line in data.splitlines()]


@pytest.mark.requirement("S0-13", "S0-12")
async def test_lines_in_lines_out_until_the_end_of_input() -> None:
    (client_in, ours_out), (ours_in, client_out) = os.pipe(), os.pipe()
    os.write(client_out, LINES + b"\n   \n")
    os.close(client_out)
    await serve(ours_in, ours_out)
    assert answers(os.read(client_in, 100_000)) == [0, 1]
    os.close(client_in)


async def test_a_last_line_without_a_newline_is_a_message() -> None:
    (client_in, ours_out), (ours_in, client_out) = os.pipe(), os.pipe()
    os.write(client_out, LINES.rstrip())
    os.close(client_out)
    await serve(ours_in, ours_out)
    assert answers(os.read(client_in, 100_000)) == [0, 1]
    os.close(client_in)


async def test_regular_files_work_as_well(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(LINES)
    input_fd, output_fd = (
        os.open(tmp_path / "in", os.O_RDONLY),
        os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT),
    )
    await serve(input_fd, output_fd)
    assert answers((tmp_path / "out").read_bytes()) == [0, 1]


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_one_socket_may_be_both_input_and_output(factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    ours, theirs = socket.socketpair()
    theirs.sendall(LINES)
    theirs.shutdown(socket.SHUT_WR)
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve(os.dup(ours.fileno()), ours.detach()))
    with theirs:
        assert answers(theirs.recv(100_000)) == [0, 1]
        assert theirs.recv(1) == b""


async def test_a_client_that_closes_its_end_is_noticed() -> None:
    (client_in, ours_out), (ours_in, client_out) = os.pipe(), os.pipe()
    client = StdioClient(ours_in, ours_out)
    await client.open_output()
    os.close(client_in)
    async with asyncio.timeout(10):
        await client.gone
    await client.aclose()
    os.close(client_out)


async def test_a_message_past_the_limit_is_refused_and_the_next_one_is_served() -> None:
    (client_in, ours_out), (ours_in, client_out) = os.pipe(), os.pipe()
    long = b'{"jsonrpc":"2.0","id":"big","method":"x","params":{"x":"%b"}}\n' % (b"y" * 5000)
    os.write(client_out, LINES + long + b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
    os.close(client_out)
    await serve(ours_in, ours_out)
    assert set(map(str, answers(os.read(client_in, 100_000)))) == {"0", "1", "big", "2"}
    os.close(client_in)
