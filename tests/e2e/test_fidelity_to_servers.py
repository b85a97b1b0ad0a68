"""What nobody had to read arrives at the server as it was written, and what it asks arrives at the client."""

from pathlib import Path

import msgspec
import pytest

from gateway import Gateway, Message
from odd_json import ODD, SPACED, ask, next_line, notification, prepare, same
from raw_peer import RawPeer, keys_at, method_of, raw_at

pytestmark = pytest.mark.e2e


@pytest.fixture
def peer(tmp_path: Path) -> RawPeer:
    return RawPeer(tmp_path)


async def sent_on(peer: RawPeer, method: str, params: bytes) -> bytes:
    """The params of the one request that reached the server."""
    prepare(peer)
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        await ask(gateway, method, params)
    (line,) = peer.heard(method)
    return raw_at(line, "params")


@pytest.mark.parametrize("arguments", [ODD, SPACED.replace(b"\r", b" "), b"{}", b'{"a":{},"a":[]}'])
async def test_arguments_reach_the_server_byte_for_byte(peer: RawPeer, arguments: bytes) -> None:
    params = b'{"vendor":%b,"arguments":%b,"name":"raw__echo","_meta":{"vendor/key":%b,"x":1.0},"z":%b}' % (
        ODD,
        arguments,
        ODD,
        ODD,
    )
    arrived = await sent_on(peer, "tools/call", params)
    same(arrived, params, name=b'"echo"')


async def test_carriage_returns_between_the_tokens_of_arguments_become_spaces(peer: RawPeer) -> None:
    arrived = await sent_on(peer, "tools/call", b'{"name":"raw__echo","arguments":%b}' % SPACED)
    assert raw_at(arrived, "arguments") == SPACED.replace(b"\r", b" ")


async def test_vendor_keys_of_meta_survive_beside_a_progress_token_of_our_own(peer: RawPeer) -> None:
    meta = b'{"vendor/a":%b,"progressToken":"mine","vendor/b":%b}' % (ODD, ODD)
    arrived = await sent_on(peer, "tools/call", b'{"name":"raw__echo","_meta":%b}' % meta)
    assert keys_at(arrived, "_meta") == keys_at(meta)
    assert raw_at(arrived, "_meta", "vendor/a") == ODD
    assert raw_at(arrived, "_meta", "vendor/b") == ODD
    assert raw_at(arrived, "_meta", "progressToken") != b'"mine"'


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", b'{"arguments":{"x":"\\u0041"},"name":"p","_meta":%b,"v":%b}' % (ODD, ODD)),
        ("resources/read", b'{"v":%b,"uri":"raw://a","_meta":%b}' % (ODD, ODD)),
        ("resources/subscribe", b'{"v":%b,"uri":"raw://a","_meta":%b}' % (ODD, ODD)),
        (
            "completion/complete",
            b'{"argument":{"name":"x","value":"\\u0041","v":%b},"context":%b,"ref":{"type":"ref/resource",'
            b'"uri":"raw://{x}","v":1.0}}' % (ODD, ODD),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_params_of_other_requests_reach_the_server_as_written(
    peer: RawPeer, method: str, params: bytes
) -> None:
    arrived = await sent_on(peer, method, params.replace(b'"name":"p"', b'"name":"raw__p"'))
    same(arrived, params)


# ---- questions of the server, and what the client says in return


async def test_a_question_and_its_answer_pass_unread(peer: RawPeer) -> None:
    question = b'{"messages":[],"maxTokens":1.0,"_meta":{"v":%b},"metadata":%b,"vendor":%b}' % ((ODD,) * 3)
    asked = b'{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":%b}\n' % question
    peer.says("tools/call", "before", asked)
    answer = b'{"role":"assistant","content":%b,"model":"m","vendor":%b}' % (ODD, ODD)
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands({"sampling": {}})
        with peer.gate("tools/call") as gate:
            id = await gateway.ask("tools/call", {"name": "raw__echo"})
            while method_of(line := await next_line(gateway)) != "sampling/createMessage":
                continue
            await gateway.send_bytes(
                b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (raw_at(line, "id"), answer)
            )
            await gateway.request("ping")  # what was sent before it has been handled
            gate.open()
            await gateway.answer(id)
        peer.says("tools/call", "before", b"")
        await gateway.call("raw__echo")  # so the server has read what came before it
    assert raw_at(line, "params") == question
    (reply,) = [got for got in peer.received() if "result" in keys_at(got)]
    assert raw_at(reply, "result") == answer
    assert raw_at(reply, "id") == b"0"


@pytest.mark.requirement("X-40")
async def test_a_cancellation_reaches_the_server_under_its_own_id_and_is_not_answered(peer: RawPeer) -> None:
    peer.says("tools/call", "before", notification("message", b'{"level":"info"}'))
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        with peer.gate("tools/call") as gate:
            id = await gateway.ask("tools/call", {"name": "raw__echo", "arguments": {}})
            await gateway.heard("notifications/message")
            await gateway.notify("notifications/cancelled", {"requestId": id, "reason": "enough"})
            await gateway.request("ping")
            gate.open()
            gate.open()
            assert "result" in await gateway.call("raw__echo")
        answered = [message for message in gateway.unread if message.get("id") == id]
    assert answered == []
    (cancelled,) = peer.heard("notifications/cancelled")
    first, _ = peer.heard("tools/call")
    assert raw_at(cancelled, "params", "requestId") == raw_at(first, "id")


# ---- what is declared to a server

EVERYTHING: Message = {
    "roots": {"listChanged": True, "vendor": 1},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
}


@pytest.mark.parametrize(
    "declared",
    [{}, {"roots": {}}, {"sampling": {}}, {"elicitation": {}}, {"elicitation": {"url": {}}}, EVERYTHING],
    ids=lambda declared: "+".join(declared) or "nothing",
)
@pytest.mark.requirement("X-12")
async def test_a_server_is_told_exactly_what_the_client_declared(peer: RawPeer, declared: Message) -> None:
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands({**declared, "experimental": {"x": {}}, "tasks": {"list": {}}})
        await gateway.request("tools/list")
    (greeting,) = peer.heard("initialize")
    assert msgspec.json.decode(raw_at(greeting, "params", "capabilities")) == declared
