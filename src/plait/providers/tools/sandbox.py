"""Confine this process before it becomes a command: what it may write, read, reach and use up.

A command policy may be wrong; a sandbox makes that harmless. Files are held by Landlock: a command
writes beneath its workspace and its own temporary folder, reads those and the system's folders, and
nothing of the user's home. Without permission it opens no TCP connection, and it never signals or
traces a process outside. Not covered: UDP, and a file's mode, owner and times. Where the kernel lacks a
part, the rest still holds, and `sandbox_report` says what is missing.
"""

from __future__ import annotations

import os

from plait.providers.tools.landlock import IOCTL_DEV, LOOK, MAKE_BLOCK, MAKE_CHAR, Kernel, file_rights

TYPE_CHECKING = False  # as typing's, which is too slow to import here
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SYSTEM = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/proc", "/sys"),
    *("/nix", "/run/current-system"),
)
"""What programs need to run and everybody on a system may read; not homes, nor what servers keep in /var."""
NAMES = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager")
"""Where /etc/resolv.conf leads; of use only with the network."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
CHANGE = file_rights(5) & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)
"""Everything but making devices and commanding them."""


def confine(
    readable: Iterable[str], writable: Iterable[str], limits: Mapping[str, int], *, network: bool
) -> None:
    """Make every promise that the kernel takes; OSError when it does not take one that it knows."""
    kernel = Kernel()
    set_limits(limits)
    kernel.drop_capabilities()
    kernel.forbid_new_privileges()  # before Landlock, which asks for it
    kernel.restrict(rules(readable, writable, network=network), network=network)


def rules(readable: Iterable[str], writable: Iterable[str], *, network: bool) -> Iterator[tuple[str, int]]:
    """Which rights there are beneath which paths."""
    for path in (*SYSTEM, *(NAMES if network else ()), *readable):
        yield path, LOOK
    for path in (*DEVICES, *writable):
        yield path, CHANGE


def set_limits(limits: Mapping[str, int]) -> None:
    """Lower resource limits by their names, such as RLIMIT_FSIZE; what a system does not know is left out."""
    import resource  # noqa: PLC0415  (not on every system)

    for name, amount in limits.items():
        kind = getattr(resource, name, None)
        if kind is not None:
            ceiling = resource.getrlimit(kind)[1]
            amount = amount if ceiling == resource.RLIM_INFINITY else min(amount, ceiling)
            resource.setrlimit(kind, (amount, amount))


def sandbox_report() -> list[str]:
    """What this system's sandbox for commands lacks, one sentence each; nothing when it is complete."""
    kernel = Kernel()
    version = kernel.version()
    lacks = []
    if version == 0:
        lacks.append("no Landlock: commands can read and write whatever plait's own user can")
    elif version < 4:
        lacks.append(f"Landlock {version} (4 is needed): commands can open network connections")
    if 0 < version < 6:
        lacks.append(f"Landlock {version} (6 is needed): commands can signal other processes of plait's user")
    if not kernel.can_forbid_new_privileges():
        lacks.append("no no_new_privs: commands can gain rights by setuid programs")
    if not hasattr(os, "geteuid") or os.geteuid() == 0:
        lacks.append("plait runs as root: commands keep root's rights on files inside the sandbox")
    return lacks
