"""What an HTTP answer says, read from its bytes: just enough of HTTP/1.1 and of event streams to measure."""

LAST_CHUNK = b"\r\n0\r\n\r\n"  # JSON text holds no bare line break, so nothing within a body looks like it
NOTHING = b"HTTP/1.1 202"  # the answer to a notification; some leave its length out


def is_whole(answer: bytes) -> bool:
    """Whether the last byte of the answer has come."""
    end = answer.find(b"\r\n\r\n")
    if end < 0:
        return False
    head = answer[:end].lower()
    if b"transfer-encoding: chunked" in head:
        return answer.endswith(LAST_CHUNK)
    _, found, rest = head.partition(b"\r\ncontent-length:")
    if not found:
        return answer.startswith(NOTHING)
    return len(answer) - end - 4 >= int(rest.partition(b"\r\n")[0])


def messages(answer: bytes) -> list[bytes]:
    """The JSON-RPC messages in it: the body, or one for each event of a stream."""
    head, _, body = answer.partition(b"\r\n\r\n")
    head = head.lower()
    if b"transfer-encoding: chunked" in head:
        body = unchunked(body)
    if b"content-type: text/event-stream" not in head:
        return [body]
    lines = body.replace(b"\r\n", b"\n").split(b"\n")
    return [data for line in lines if line.startswith(b"data:") and (data := line[5:].strip())]


def unchunked(body: bytes) -> bytes:
    """The body without the lengths of its chunks."""
    whole = b""
    while True:
        size, _, rest = body.partition(b"\r\n")
        length = int(size.partition(b";")[0], 16)
        if length == 0:
            return whole
        whole += rest[:length]
        body = rest[length + 2 :]


def session_of(answer: bytes) -> str:
    """The session it opens, if it does."""
    for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"mcp-session-id":
            return value.strip().decode()
    return ""


def status_of(answer: bytes) -> int:
    """The number in its first line."""
    return int(answer.split(b" ", 2)[1])
