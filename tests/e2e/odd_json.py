"""Odd but legal JSON for every place of a message, and how to see whether it arrived as it was written."""

from gateway import Gateway
from raw_peer import RawPeer, keys_at, method_of, raw_at

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


def prepare(peer: RawPeer) -> None:
    for method, field, item, _, _ in LISTS:
        peer.says(method, "result", b'{"%b":[%b]}' % (field.encode(), item))


def notification(name: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"notifications/%b","params":%b}\n' % (name.encode(), params)


async def ask(gateway: Gateway, method: str, params: bytes = b"{}") -> bytes:
    """The line that answers a request whose params are these bytes."""
    *_, answer = await ask_and_listen(gateway, method, params)
    return answer


async def ask_and_listen(gateway: Gateway, method: str, params: bytes) -> list[bytes]:
    """All lines up to the one that answers the request."""
    await gateway.send_bytes(
        b'{"jsonrpc":"2.0","id":"me","method":"%b","params":%b}\n' % (method.encode(), params)
    )
    lines = [await next_line(gateway)]
    while method_of(lines[-1]) is not None or raw_at(lines[-1], "id") != b'"me"':
        lines.append(await next_line(gateway))
    return lines


async def next_line(gateway: Gateway) -> bytes:
    line = await gateway.read_line()
    assert line, "the gateway closed its output"
    return line


def same(arrived: bytes, sent: bytes, **ours: bytes) -> None:
    """The same fields in the same order, each with the same bytes but those that we change."""
    assert keys_at(arrived) == keys_at(sent)
    for name in keys_at(sent):
        assert raw_at(arrived, name) == ours.get(name, raw_at(sent, name))
