import pytest

from plait.wire.salvage import salvage_any_id, salvage_ids


@pytest.mark.parametrize(
    ("line", "ids"),
    [
        (b'{"jsonrpc":"1.0","id":7,"result":{}}', [b"7"]),
        (b'{"jsonrpc":"2.0","id":7,"result":NaN}', [b"7"]),
        (b'{"jsonrpc":"2.0","id":7,"result":{"a":', [b"7"]),
        (b'{"id":7,"jsonrpc":"2.0","result":' + b"[" * 3000, [b"7"]),
        (b'{"result":' + b"[" * 3000 + b"]" * 3000 + b',"id":7,"jsonrpc":"2.0"}', [b"7"]),
        (b'[{"jsonrpc":"2.0","id":7,"result":{}},{"jsonrpc":"2.0","id":8,"result":{}}]', [b"7", b"8"]),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,"result":{}}', [b"7"]),
        (b'{"jsonrpc":"2.0","id":7,"result":"\xff"}', [b"7"]),
        (b'{"jsonrpc":"2.0","id":"7","result":3}', []),
        (b'{"jsonrpc":"2.0","id":7.0,"result":3}', []),
        (b'{"jsonrpc":"2.0","id":true,"result":3}', []),
        (b'{"jsonrpc":"2.0","result":{"id":7},"x":', []),
        (b'{"jsonrpc":"2.0","result":{"id":7}}', []),
        (b'{"jsonrpc":"2.0","id":7,"method":3}', []),
        (b"hello", []),
        (b"", []),
    ],
)
def test_only_an_id_of_the_message_itself_is_found(line: bytes, ids: list[bytes]) -> None:
    assert salvage_ids(line) == ids


@pytest.mark.parametrize(
    ("head", "id"),
    [
        (b'{"jsonrpc":"2.0","id":"a\\"b","method":"x', b'"a\\"b"'),
        (b'{"id":-3,"method":', b"-3"),
        (b'{"method":"tools/call","params":{"id":1,', None),
        (b'{"jsonrpc":"2.0","id":1.5,', None),
    ],
)
def test_the_id_of_a_request_that_is_too_long_is_found_at_its_beginning(
    head: bytes, id: bytes | None
) -> None:
    assert salvage_any_id(head) == id
