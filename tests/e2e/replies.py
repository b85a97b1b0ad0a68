"""Answers that break a rule, as the bytes that misbehaving.py writes; ID stands for the id of the call."""

OK = b'{"content":[{"type":"text","text":"ok"}]}'
REPLY = b'{"jsonrpc":"2.0","id":ID,"result":%b}\n' % OK
BEGINNING = b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"'
STRANGER = b'{"jsonrpc":"2.0","id":9999,"result":%b}\n' % OK


def saying(text: bytes) -> bytes:
    """A well-formed reply with this inside the quotes of its text."""
    return BEGINNING + text + b'"}]}}\n'


REPLIES = {
    # What no client can take for an answer.
    "wrong_version": b'{"jsonrpc":"1.0","id":ID,"result":%b}\n' % OK,
    "no_version": b'{"id":ID,"result":%b}\n' % OK,
    "null_result": b'{"jsonrpc":"2.0","id":ID,"result":null}\n',
    "text_result": b'{"jsonrpc":"2.0","id":ID,"result":"ok"}\n',
    "no_result": b'{"jsonrpc":"2.0","id":ID}\n',
    "result_and_error": b'{"jsonrpc":"2.0","id":ID,"result":%b,"error":{"code":1,"message":""}}\n' % OK,
    "error_without_code": b'{"jsonrpc":"2.0","id":ID,"error":{"message":"no"}}\n',
    "error_as_text": b'{"jsonrpc":"2.0","id":ID,"error":"no"}\n',
    "batch": b'[{"jsonrpc":"2.0","id":ID,"result":%b}]\n' % OK,
    "nan": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":{"x":NaN}}}\n',
    "nul": saying(b"a\0b"),
    "python": b"{'jsonrpc': '2.0', 'id': ID, 'result': None}\n" + b'{"id":ID,"result":None}\n',
    "trailing": REPLY.rstrip() + b" and more\n",
    "cut": BEGINNING + b"\n",
    "deep": b'{"jsonrpc":"2.0","id":ID,"result":{"content":%b%b}}\n' % (b"[" * 1500, b"]" * 1500),
    "deep_id_last": b'{"result":{"content":%b%b},"id":ID,"jsonrpc":"2.0"}\n' % (b"[" * 1500, b"]" * 1500),
    "deeper": b'{"jsonrpc":"2.0","id":ID,"result":{"content":%b%b}}\n' % (b"[" * 100_000, b"]" * 100_000),
    "id_as_text": REPLY.replace(b"ID", b'"ID"'),
    "id_as_fraction": REPLY.replace(b"ID", b"ID.0"),
    "id_null": REPLY.replace(b"ID", b"null"),
    # What is odd, and must arrive all the same.
    "bom": b"\xef\xbb\xbf" + REPLY,
    "crlf": REPLY.replace(b"\n", b"\r\n"),
    "invalid_utf8": saying(b"cut \xf0\x9f\x98 here"),
    "lone_surrogate": saying(b"cut \\ud83d here"),
    "duplicate_keys": b'{"jsonrpc":"2.0","id":9998,"result":{},"id":ID,"result":%b}\n' % OK,
    "big_integer": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":%b}}\n' % (b"1234567890" * 600),
    "unknown_content": b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"hologram","z":[1.50]}]}}\n',
    "ansi": saying(b"\\u001b[2J\\u001b]0;pwned\\u0007 red"),
    "twice": REPLY + saying(b"second"),
    "unknown_id": STRANGER + REPLY,
    "garbage": b"Debugger attached.\n\n   \n{]\n\x00\x01\x02\n[1,2]\n42\n" * 50 + REPLY,
    "stale_progress": (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9997,"progress":1}}\n'
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","progress":2}}\n'
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":3}}\n'
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":3}}\n'
        + REPLY
        + b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":4}}\n'
    ),
}
