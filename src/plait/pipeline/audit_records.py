"""What the audit writes down: one record before a call, one after it, and a few about the log itself."""

from datetime import datetime
from typing import Literal

from msgspec import Struct

from plait.version import VERSION

Outcomes = Literal["ok", "tool_error", "denied", "error", "cancelled", "unknown"]
"""`unknown` is never written: it is what readers say of a call that was begun by a process that died."""


class Intent(Struct, omit_defaults=True, gc=False):
    """A call is about to be made."""

    event: str
    """The method."""
    phase: str
    call: int
    """Our number for it, the same in both records."""
    ts: datetime
    mono: int
    """The monotonic clock in nanoseconds: durations and order hold when somebody sets the time."""
    name: str
    """The exposed name, or the URI of a resource."""
    identity: str
    bytes_in: int
    server: str = ""
    id_type: str = ""
    client: str = ""
    client_version: str = ""
    revision: str = ""
    shape: object = None
    """Keys and types of the arguments, without a value."""
    digest: str = ""
    """A keyed hash of the arguments: tells whether two calls had the same."""
    digest_of: str = ""
    """`raw` where the arguments were too large to be put in order first."""
    summary: str = ""
    """The beginning of the arguments, redacted; only where asked for, or all of them if the tool asks."""
    redacted: int = 0
    """How many values were taken out before anything was stored."""


class Outcome(Struct, omit_defaults=True, gc=False):
    """What became of it."""

    event: str
    phase: str
    call: int
    ts: datetime
    mono: int
    name: str
    identity: str
    outcome: Outcomes
    duration_us: int
    bytes_out: int = 0
    server: str = ""
    decision: str = ""
    rule: str = ""
    code: int = 0
    """Of a JSON-RPC error."""
    fault: str = ""
    """What kind of failure it was: timeout, unavailable … or the name of an exception."""


class Opened(Struct, gc=False):
    """The first line of every file."""

    event: str
    ts: datetime
    mono: int
    stream: str
    segment: int
    slot: int
    """The number of the stream's entry in the register."""
    key: str
    pid: int
    plait: str = VERSION


class Gap(Struct, gc=False):
    """Records are missing here, because they could not be written."""

    ts: datetime
    mono: int
    lost: int
    since: datetime
    reason: str
    event: str = "gap"


class Closed(Struct, gc=False):
    """The last line of a stream whose process ended as it should."""

    ts: datetime
    mono: int
    event: str = "closed"
