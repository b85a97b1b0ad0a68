"""What nobody had to read arrives at the client as it was written: byte for byte, through a real process."""

from pathlib import Path

import pytest

from gateway import Gateway
from odd_json import LISTS, ODD, SPACED, ask, ask_and_listen, notification, prepare, same
from raw_peer import RawPeer, method_of, raw_at

pytestmark = pytest.mark.e2e


@pytest.fixture
def peer(tmp_path: Path) -> RawPeer:
    return RawPeer(tmp_path)


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
        lines = await ask_and_listen(gateway, "tools/call", params)
    (message,) = of("notifications/message", lines)
    (progress,) = of("notifications/progress", lines)
    same(raw_at(message, "params"), said, logger=b'"raw/x"')
    same(raw_at(progress, "params"), moved.replace(b"$TOKEN", b"0"), progressToken=b'"mine"')


@pytest.mark.requirement("K-20", "X-44")
async def test_progress_that_does_not_increase_is_not_passed_on(peer: RawPeer) -> None:
    values = (b"1", b"1.0", b"0.5", b"2", b"-3", b"1e1", b"10")
    forms = [b'{"progressToken":$TOKEN,"progress":%b}' % value for value in values]
    peer.says("tools/call", "before", b"".join(notification("progress", form) for form in forms))
    params = b'{"name":"raw__echo","_meta":{"progressToken":7}}'
    async with Gateway(peer.config()) as gateway:
        await gateway.shake_hands()
        lines = await ask_and_listen(gateway, "tools/call", params)
    assert [raw_at(line, "params") for line in of("notifications/progress", lines)] == [
        b'{"progressToken":7,"progress":%b}' % value for value in (b"1", b"2", b"1e1")
    ]


def of(method: str, lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if method_of(line) == method]
