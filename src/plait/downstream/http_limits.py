"""What clients over HTTP may cost."""

from msgspec import Struct

MEBIBYTE = 1024 * 1024


class HttpLimits(Struct, frozen=True, kw_only=True):
    """Times are seconds."""

    body_bytes: int = 4 * MEBIBYTE
    """Of one request."""
    body_time: float = 30.0
    head_bytes: int = 32 * 1024
    head_time: float = 10.0
    """From the opening of a connection, or the first byte of a request, to the end of its headers."""
    keep_alive: float = 75.0
    """That a connection may be open without a request."""
    stalled: float = 30.0
    """That a client may leave what we send unread."""
    connections: int = 10_000
    sessions: int = 10_000
    """In all."""
    sessions_each: int = 100
    """Of one named identity that has no number of its own."""
    idle: float = 1800.0
    """After which a session is ended that nobody uses."""
    running: int = 1024
    """Requests of one session at once."""
    ping: float = 15.0
    """Between two signs of life on a stream, and before an answer becomes one."""
    replay_bytes: int = 64 * MEBIBYTE
    """Kept for clients that lost their stream, in all sessions together."""
    replay_each: int = MEBIBYTE
