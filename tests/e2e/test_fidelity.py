"""What nobody had to read arrives as it was written: compared byte for byte, through a real process."""

from pathlib import Path

import msgspec
import pytest
from gateway import Gateway, Message
from raw_peer import RawPeer, keys_at, raw_at

pytestmark = pytest.mark.e2e

ODD = (
    rb'{"z":1.0,"a":1,"big":123456789012345678901234567890,"e":1E+2,"-0":-0.0,"n":null,'
    rb'"":{" ":"\\u0000\u0000"},"escaped":"\u00e9\/\u0041\ud83d\ude00\n","raw":"'
    + "é\u2028😀".encode()
    + rb'",'
    rb'"t":[true,[],{},{"a":{"b":[[[0]]]}}]}'
)
"""Everything a decoder and an encoder would tell apart: order, number formats, escapes, raw Unicode."""

SPACED = b'{\r "a" :\t[ 1 ,\r\r2 ] , "text":"\\r\\n" \r}'
"""Pretty-printed with carriage returns, as it may stand on one line."""


@pytest.fixture
def peer(tmp_path: Path) -> RawPeer:
    return RawPeer(tmp_path)


async def ask(gateway: Gateway, method: str, params: bytes = b"{}") -> bytes:
    """The line that answers a request whose params are these bytes."""
    await gateway.send_bytes(
        b'{"jsonrpc":"2.0","id":"me","method":"%b","params":%b}\n' % (method.encode(), params)
    )
    while True:
        line = await gateway.read_line()
        assert line, "the gateway closed its output"
        if b'"id":"me"' in line:
            return line


def same(arrived: bytes, sent: bytes, **ours: bytes) -> None:
    """The same fields in the same order, each with the same bytes but those that we change."""
    assert keys_at(arrived) == keys_at(sent)
    for name in keys_at(sent):
        assert raw_at(arrived, name) == ours.get(name, raw_at(sent, name))


# ---- from the server to the client

TOOL = (
    b'{"name":"echo","title":"E","description":"\\u00e9","inputSchema":{"type":"object","properties":{},"$defs":'
    b'{"x":%b},"x-vendor":%b},"outputSchema":{"type":"object","$anchor":"a","x":%b},"annotations":{"readOnlyHint":true,'
    b'"vendor":%b},"icons":[{"src":"data:,","vendor":%b}],"execution":{"taskSupport":"forbidden"},"_meta":%b,'
    b'"vendor/field":%b}'
) % ((ODD,) * 7)
PROMPT = b'{"name":"p","arguments":[{"name":"x","required":false,"vendor":%b}],"_meta":%b,"vendor":%b}' % (
    (ODD,) * 3
)
RESOURCE = (
    b'{"uri":"raw://a","name":"a","size":12345678901234567890,"annotations":%b,"_meta":%b,"vendor":%b}'
    % ((ODD,) * 3)
)
TEMPLATE = b'{"uriTemplate":"raw://{x}","name":"t","_meta":%b,"vendor":%b}' % ((ODD,) * 2)
LISTS = [
    ("tools/list", "tools", TOOL, "name", b'"raw__echo"'),
    ("prompts/list", "prompts", PROMPT, "name", b'"raw__p"'),
    ("resources/list", "resources", RESOURCE, "uri", b'"raw://a"'),
    ("resources/templates/list", "resourceTemplates", TEMPLATE, "uriTemplate", b'"raw://{x}"'),
]


@pytest.mark.parametrize(("method", "field", "item", "key", "exposed"), LISTS, ids=[row[1] for row in LISTS])
@pytest.mark.requirement("S0-03")
async def test_every_field_of_a_listed_item_arrives_as_written_but_the_name(
    peer: RawPeer, method: str, field: str, item: bytes, key: str, exposed: bytes
) -> None:
    peer.says(method, "result", b'{"%b":[%b]}' % (field.encode(), item))
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        line = await ask(gateway, method)
    same(raw_at(line, "result", field, 0), item, **{key: exposed})


CONTENT = (
    b'[{"type":"text","text":"\\u0041","annotations":{"priority":1.0,"vendor":%b},"_meta":%b,"vendor":%b},'
    b'{"type":"image","data":"AAAA","mimeType":"image/png","vendor":%b},{"type":"audio","data":"","mimeType":"a/b"},'
    b'{"type":"resource_link","uri":"raw://a","name":"a","icons":[%b]},{"type":"resource","resource":{"uri":"u:",'
    b'"text":"","_meta":%b}},{"type":"of tomorrow","vendor":%b}]'
) % ((ODD,) * 7)
RESULTS = [
    (
        "tools/call",
        b'{"name":"raw__echo"}',
        b'{"content":%b,"structuredContent":%b,"isError":false,"_meta":%b,"v":%b}',
    ),
    (
        "prompts/get",
        b'{"name":"raw__p"}',
        b'{"messages":[{"role":"user","content":%b}],"v":%b,"_meta":%b,"w":%b}',
    ),
    ("resources/read", b'{"uri":"raw://a"}', b'{"contents":%b,"v":%b,"_meta":%b,"w":%b}'),
    (
        "completion/complete",
        b'{"ref":{"type":"ref/prompt","name":"raw__p"},"argument":{"name":"x","value":""}}',
        b'{"completion":{"values":[],"v":%b,"total":1.0},"w":%b,"_meta":%b,"x":%b}',
    ),
]


def prepare(peer: RawPeer) -> None:
    for method, field, item, _, _ in LISTS:
        peer.says(method, "result", b'{"%b":[%b]}' % (field.encode(), item))


@pytest.mark.parametrize(("method", "params", "form"), RESULTS, ids=[row[0] for row in RESULTS])
async def test_a_result_arrives_byte_for_byte(peer: RawPeer, method: str, params: bytes, form: bytes) -> None:
    prepare(peer)
    payload = form % (CONTENT, ODD, ODD, ODD)
    peer.says(method, "result", payload)
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        assert raw_at(await ask(gateway, method, params), "result") == payload


@pytest.mark.parametrize(("method", "params", "form"), RESULTS, ids=[row[0] for row in RESULTS])
async def test_an_error_arrives_byte_for_byte(peer: RawPeer, method: str, params: bytes, form: bytes) -> None:
    prepare(peer)
    payload = b'{"code":-32042,"message":"\\u0041","data":%b,"vendor":%b}' % (ODD, ODD)
    peer.says(method, "error", payload)
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        assert raw_at(await ask(gateway, method, params), "error") == payload


async def test_a_pretty_printed_result_with_carriage_returns_is_one_line_for_the_client(
    peer: RawPeer,
) -> None:
    peer.says("tools/call", "result", b'{"content":[],"structuredContent":%b}' % SPACED)
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        line = await ask(gateway, "tools/call", b'{"name":"raw__echo"}')
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    assert raw_at(line, "result", "structuredContent") == SPACED.replace(b"\r", b" ")


async def test_half_an_emoji_does_not_cost_the_result(peer: RawPeer) -> None:
    """Node cuts strings between the two halves; the half means nothing, all the rest must arrive."""
    peer.says(
        "tools/call",
        "result",
        b'{"content":[{"type":"text","text":"cut \\ud83d"}],"structuredContent":%b}' % ODD,
    )
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        line = await ask(gateway, "tools/call", b'{"name":"raw__echo"}')
    assert raw_at(line, "result", "structuredContent") == ODD
    assert raw_at(line, "result", "content", 0, "text") in (b'"cut \\ud83d"', b'"cut \\ufffd"')


async def test_notifications_of_a_server_keep_their_vendor_fields(peer: RawPeer) -> None:
    said = b'{"level":"info","logger":"x","data":%b,"_meta":%b,"vendor":%b}' % (ODD, ODD, ODD)
    moved = b'{"progressToken":$TOKEN,"progress":1.50,"total":2.0,"message":"\\u0041","_meta":%b}' % ODD
    peer.says("tools/call", "before", notification("message", said) + notification("progress", moved))
    params = b'{"name":"raw__echo","_meta":{"progressToken":"mine"}}'
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        await gateway.send_bytes(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}\n' % params)
        message, progress = await gateway.read_line(), await gateway.read_line()
    same(raw_at(message, "params"), said, logger=b'"raw/x"')
    same(raw_at(progress, "params"), moved.replace(b"$TOKEN", b"0"), progressToken=b'"mine"')


def notification(name: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"notifications/%b","params":%b}\n' % (name.encode(), params)


# ---- from the client to the server


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
            line = await gateway.read_line()
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
async def test_a_server_is_told_exactly_what_the_client_declared(peer: RawPeer, declared: Message) -> None:
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands({**declared, "experimental": {"x": {}}, "tasks": {"list": {}}})
        await gateway.request("tools/list")
    (greeting,) = peer.heard("initialize")
    assert msgspec.json.decode(raw_at(greeting, "params", "capabilities")) == declared
