"""Every input of the JSONTestSuite as a client's and as a server's line: refused, and the next is served.

One process serves all inputs of a direction. A newline ends a message on a pipe, so an input with
newlines inside is several lines, each judged on its own.
"""

import json
from pathlib import Path

import pytest

from gateway import Gateway, Message
from plait.session.calling import CallingSession
from plait.session.exchange import Count, Fail
from raw_peer import RawPeer

pytestmark = pytest.mark.e2e

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
REVISIONS = ["2025-03-26", "2025-11-25"]
"""With batches, and without: an array means something else in each."""


@pytest.fixture
def inputs(corpora: Path) -> list[Path]:
    files = sorted((corpora / "JSONTestSuite" / "test_parsing").iterdir())
    assert len(files) == 318
    return files


def lines_of(data: bytes) -> list[bytes]:
    """What a reader of lines makes of it; blank ones are no messages."""
    return [line for line in data.split(b"\n") if line.strip()]


def verdicts(file: Path, line: bytes) -> set[int]:
    """The error codes that a client may get for this line of this input."""
    if file.name.startswith("i_"):
        return {PARSE_ERROR, INVALID_REQUEST}
    if file.read_bytes().strip() == line.strip():
        return {INVALID_REQUEST if file.name.startswith("y_") else PARSE_ERROR}
    return {INVALID_REQUEST if is_json(line) else PARSE_ERROR}


def is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


async def answers_to(gateway: Gateway, data: bytes) -> list[Message | list[Message]]:
    """What comes back for it. The ping behind it is answered last, and shows that we are still served."""
    await gateway.send_bytes(data + b'\n{"jsonrpc":"2.0","id":"next","method":"ping"}\n')
    answers: list[Message | list[Message]] = []
    while True:
        line = await gateway.read_line()
        assert line, "the gateway closed its output"
        answer = json.loads(line)
        if answer == {"jsonrpc": "2.0", "id": "next", "result": {}}:
            return answers
        answers.append(answer)


def code_of(answer: Message | list[Message], line: bytes) -> int:
    """The error in an answer; an array of messages gets an array of answers, which must agree."""
    (code,) = {judged(part, line) for part in (answer if isinstance(answer, list) else [answer])}
    return code


def judged(answer: Message, line: bytes) -> int:
    match answer:
        case {"jsonrpc": "2.0", "id": id, "error": {"code": int(code), "message": str(message)}}:
            assert message
            # An id is echoed where the message itself has one that can be read.
            assert id is None or (code == INVALID_REQUEST and id == json.loads(line)["id"])
            return code
    raise AssertionError(f"no error: {answer}")


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.requirement("S0-21", "S1-011", "X-02")
async def test_every_input_as_a_line_of_a_client_is_refused_and_the_next_request_served(
    inputs: list[Path], revision: str
) -> None:
    async with Gateway() as gateway:
        await gateway.shake_hands(revision=revision)
        for file in inputs:
            answers = await answers_to(gateway, file.read_bytes())
            lines = lines_of(file.read_bytes())
            assert len(answers) == len(lines), f"{file.name}: {answers}"
            for answer, line in zip(answers, lines, strict=True):
                assert code_of(answer, line) in verdicts(file, line), f"{file.name}: {answer}"
        called = await gateway.call("builtin__echo", {"text": "still here"})
    assert "result" in called
    assert gateway.process.returncode == 0


@pytest.mark.parametrize("revision", REVISIONS)
async def test_every_input_as_a_line_of_a_server_leaves_the_call_under_way_and_the_next_alone(
    inputs: list[Path], tmp_path: Path, revision: str
) -> None:
    peer = RawPeer(tmp_path)
    peer.says("tools/call", "result", b'{"content":[{"type":"text","text":"fine"}]}')
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands(revision=revision)
        for file in inputs:
            peer.says("tools/call", "before", file.read_bytes() + b"\n")
            answer = await gateway.call("raw__echo", {"input": file.name})
            assert answer.get("result") == {"content": [{"type": "text", "text": "fine"}]}, (
                f"{file.name}: {answer}"
            )
    assert gateway.process.returncode == 0
    assert len(peer.heard("initialize")) == 1, "the server was started once, and never again"
    assert len(peer.heard("tools/call")) == len(inputs)


def test_an_array_without_end_is_one_fault_of_the_server_and_fails_the_call_it_answers() -> None:
    session: CallingSession[str] = CallingSession()
    session.revision = "2025-03-26"
    session.request("tools/call", None, "whoever called")
    effects = session.receive(b"[" + b"{}," * 10_000 + b'{"jsonrpc":"2.0","id":1,"result":{}}]')
    assert [type(effect) for effect in effects] == [Count, Fail]


def test_arrays_in_arrays_are_no_batch_of_a_server() -> None:
    session: CallingSession[str] = CallingSession()
    session.revision = "2025-03-26"
    effects = session.receive(b'[{"jsonrpc":"2.0","method":"x"},[{"jsonrpc":"2.0","method":"x"}]]')
    assert [type(effect) for effect in effects] == [Count]
