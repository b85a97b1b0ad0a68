"""What can happen to a mount: its states, the moves between them, and the events that tell of them."""

import enum

from plait.errors import LocalProtocolError


class MountState(enum.Enum):
    PENDING = "pending"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


TRANSITIONS = {
    MountState.PENDING: {MountState.ACTIVE, MountState.FAILED, MountState.CLOSED},
    MountState.ACTIVE: {MountState.PENDING, MountState.FAILED, MountState.CLOSED},
    MountState.FAILED: {MountState.PENDING, MountState.CLOSED},
    MountState.CLOSED: set[MountState](),
}
"""All that can happen to a mount. ACTIVE to PENDING is falling asleep, FAILED to PENDING a restart."""


def check(before: MountState, after: MountState) -> None:
    if after not in TRANSITIONS[before]:
        raise LocalProtocolError(f"a mount cannot go from {before.value} to {after.value}")


class MountEvent(enum.Enum):
    """What listeners of a compositor hear. A mount that succeeds says STATE, then MOUNTED."""

    MOUNTED = "mounted"
    UNMOUNTED = "unmounted"
    STATE = "state"
