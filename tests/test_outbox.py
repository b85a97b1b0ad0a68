import asyncio

from plait.outbox import Outbox


class Pipe(asyncio.WriteTransport):
    """A transport that notes each write of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closing = False

    def write(self, data: object) -> None:
        assert isinstance(data, bytes)
        self.writes.append(data)

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return 7


async def test_a_burst_leaves_in_one_piece_and_in_order() -> None:
    pipe = Pipe()
    outbox = Outbox(pipe, lambda: False)
    for line in (b"a\n", b"b\n", b"c\n"):
        outbox.write(line)
    assert pipe.writes == []
    assert outbox.backlog() == 6 + 7
    await asyncio.sleep(0)
    assert pipe.writes == [b"a\nb\nc\n"]
    assert outbox.backlog() == 7


async def test_what_is_alone_leaves_at_once_but_never_before_what_waits() -> None:
    pipe = Pipe()
    alone = True
    outbox = Outbox(pipe, lambda: alone)
    outbox.write(b"a\n")
    assert pipe.writes == [b"a\n"]
    alone = False
    outbox.write(b"b\n")
    alone = True
    outbox.write(b"c\n")
    assert pipe.writes == [b"a\n"]
    await asyncio.sleep(0)
    assert pipe.writes == [b"a\n", b"b\nc\n"]


async def test_nothing_is_written_to_a_pipe_that_is_closing() -> None:
    pipe = Pipe()
    outbox = Outbox(pipe, lambda: False)
    outbox.write(b"a\n")
    pipe.closing = True
    outbox.flush()
    await asyncio.sleep(0)
    Outbox(pipe, lambda: True).write(b"b\n")
    assert pipe.writes == []
