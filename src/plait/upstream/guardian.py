"""Fork a keeper for every server; the process that does it is the only one plait starts itself.

    plait ──channel──> guardian ──fork──> keeper ──fork, exec──> server ──> whatever it starts
      └──────────────────leash──────────────┘

Each byte on the channel brings one end of a leash, a socket: the guardian forks a keeper for it, and
lets go of it. The keeper takes its order from the leash, starts the server and watches over it. It is
a subreaper: a process that loses its parent anywhere below it becomes its child, so neither a double
fork nor a new session leads out of the tree. When the server ends, or the leash does (plait closed
it, crashed, was killed), the keeper kills what is left, reaps it, and exits.

Nobody holds what is not theirs, or ends of file would never be seen: a server's pipes travel on its
leash, past the guardian; a leash is gone from the guardian before the next one comes, so no keeper
inherits another's; everything is close-on-exec. Should a keeper be killed, the kernel kills its server
(a parent-death signal), and the guardian, a subreaper too, kills what else the keeper leaves behind.
Should the guardian be killed, its keepers live on by their own leashes.
"""

from __future__ import annotations

import gc
import os
import select
import sys

from plait.upstream import tree
from plait.upstream.keeper import DESCRIPTOR_SIZE, Keeper, received_descriptors, say

TYPE_CHECKING = False  # as typing's, which is too slow to import here
if TYPE_CHECKING:
    import signal
    import socket
    from typing import NoReturn
else:
    import _signal as signal
    import _socket as socket


class Guardian:
    """Keepers, and the channel that asks for more."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._bell = tree.Bell()
        self._keepers: set[int] = set()
        self._strays = False
        tree.adopt_orphans()

    def run(self) -> None:
        """Serve until plait closes the channel or dies, and all keepers have ended by their leashes."""
        poll = select.poll()
        poll.register(self._channel.fileno(), select.POLLIN)
        poll.register(self._bell.reader, select.POLLIN)
        serving = True
        while serving or self._keepers or self._strays:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._bell.reader in ready:
                self._reap()
            if self._channel.fileno() in ready and not self._serve():
                serving = False
                poll.unregister(self._channel.fileno())

    def _serve(self) -> bool:
        """Take one leash from the channel; False at its end."""
        call, ancillary, _, _ = self._channel.recvmsg(1, socket.CMSG_SPACE(DESCRIPTOR_SIZE))
        for descriptor in received_descriptors(ancillary):
            self._fork_keeper(socket.socket(fileno=descriptor))
        return call != b""

    def _fork_keeper(self, leash: socket.socket) -> None:
        """Give this leash a keeper of its own."""
        try:
            keeper = os.fork()
        except OSError as error:
            say(leash, f"failed fork {error.errno}")
        else:
            if keeper == 0:
                self._channel.close()
                self._bell.close()
                run_and_exit(Keeper(leash))
            self._keepers.add(keeper)
        leash.close()

    def _reap(self) -> None:
        """Collect keepers that have ended, and kill what a killed one left behind."""
        self._bell.silence()
        try:
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                self._strays |= ended[0] in self._keepers and ended[1] != 0
                self._keepers.discard(ended[0])
        except ChildProcessError:
            pass
        if self._strays:
            try:
                # Each of their deaths rings the bell: we come back until nobody is found.
                self._strays = tree.strike((signal.SIGKILL,), spare=self._keepers) > 0
            except PermissionError:
                self._strays = False  # they changed their user: we are powerless


def run_and_exit(process: Keeper | Guardian) -> NoReturn:
    """Run to the end, and leave without the interpreter's own farewell, which takes time."""
    status = 1
    try:
        process.run()
        status = 0
    finally:
        os._exit(status)


def main() -> NoReturn:
    """Be the guardian on the channel whose descriptor is the last argument."""
    # Only our sockets end us. A Ctrl-C, or a service manager that signals everybody, means plait,
    # which will stop its servers in order.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    channel = socket.socket(fileno=int(sys.argv[-1]))
    os.set_inheritable(channel.fileno(), False)
    # Keepers share our memory until somebody writes to it, and a collection would.
    gc.disable()
    gc.freeze()
    run_and_exit(Guardian(channel))
