"""Watch over one server: start it, report its end, and kill all that it started.

A keeper reports in lines: `started PID` or `failed STAGE ERRNO`, later `exited CODE`. That it is gone
means that the whole tree is. It takes one command, and the end of its leash as the other: kill.
"""

from __future__ import annotations

import marshal
import os
import select

from plait.upstream import tree

TYPE_CHECKING = False  # as typing's, which is too slow to import here
if TYPE_CHECKING:
    import signal
    import socket
    from typing import NoReturn

    Order = tuple[list[bytes], dict[bytes, bytes], bytes | None, int | None, int | None]
else:
    import _signal as signal
    import _socket as socket

TERMINATE = b"T"
HEADER_SIZE = 4  # of an order: the length of the rest, little endian
DESCRIPTOR_SIZE = 4


class Keeper:
    """One server, its whole tree, and the leash that ties them to plait."""

    def __init__(self, leash: socket.socket) -> None:
        self._leash = leash
        self._bell = tree.Bell()
        self._adopts = tree.adopt_orphans()
        self._server = 0
        self._launch: int | None = None
        self._ended = False
        self._childless = False
        self._terminating = False

    def run(self) -> None:
        """Start the server, watch over it, and leave nothing behind, whatever happens."""
        try:
            self._start(*receive_order(self._leash))
            self._watch()
        except (EOFError, OSError):
            pass  # plait changed its mind, or has been told
        finally:
            self._extinguish()

    def _start(self, order: Order, pipes: list[int]) -> None:
        """Fork the server; the launch pipe will tell what became of its exec."""
        self._launch, writer = os.pipe()
        keeper = os.getpid()
        try:
            self._server = os.fork()
        except OSError as error:
            self._say(f"failed fork {error.errno}")
            raise
        if self._server == 0:
            become(order, pipes, writer, keeper)
        for descriptor in (writer, *pipes):
            os.close(descriptor)  # or nobody would ever see the end of them

    def _watch(self) -> None:
        """Serve the leash until it breaks or the server has ended."""
        poll = select.poll()
        for descriptor in (self._leash.fileno(), self._bell.reader, self._launch):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._launch is not None and self._launch in ready:
                poll.unregister(self._launch)
                self._report_launch()
            if self._bell.reader in ready:
                self._reap()
            # Asked to terminate, the rest of the tree gets as much time as the server itself.
            if self._childless or (self._ended and not self._terminating):
                return
            if self._leash.fileno() in ready and not self._obey():
                return

    def _obey(self) -> bool:
        """Carry out what came over the leash; False when it broke."""
        command = self._leash.recv(1)
        if command == TERMINATE:
            self._terminating = True
            try:  # noqa: SIM105  (contextlib is slow to import)
                self._strike(signal.SIGTERM, signal.SIGCONT)  # the stopped must wake up to end
            except PermissionError:
                pass  # they changed their user
        return command != b""

    def _report_launch(self) -> None:
        """Tell whether the exec worked: then the pipe closed without a word."""
        if self._launch is not None:
            failure = os.read(self._launch, 64).decode()
            os.close(self._launch)
            self._launch = None
            self._say(f"failed {failure}" if failure else f"started {self._server}")

    def _reap(self) -> None:
        """Collect every child that has ended; the server's own end is reported at once."""
        self._bell.silence()
        try:
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                if ended[0] == self._server:
                    self._ended = True
                    self._report_launch()
                    self._say(f"exited {os.waitstatus_to_exitcode(ended[1])}")
                    if not self._terminating:
                        self._kill_group()
        except ChildProcessError:
            self._childless = True

    def _extinguish(self) -> None:
        """Kill until nobody is left; new ones may be born while we look."""
        pause = 4
        if not self._ended:
            self._kill_group()
        self._reap()
        while not (self._childless and self._adopts):
            try:
                if not self._strike(signal.SIGKILL) and self._childless:
                    return
            except PermissionError:
                return  # they changed their user: we are powerless, and need not stay to watch
            self._bell.wait(pause)
            pause = min(pause * 2, 1000)
            self._reap()

    def _kill_group(self) -> None:
        """Kill the server's group, in one step, while its number cannot be anybody else's."""
        try:
            if self._server:
                os.kill(-self._server, signal.SIGKILL)
        except OSError:
            pass  # it has no group yet, or nobody is left, or nobody that we may kill

    def _strike(self, *signals: int) -> int:
        """Send signals to the whole tree."""
        # Where we cannot adopt orphans, the server's group is all that still ties them to it.
        return tree.strike(signals, group=0 if self._adopts else self._server)

    def _say(self, line: str) -> None:
        say(self._leash, line)


def say(leash: socket.socket, line: str) -> None:
    """Report to plait, if it is still there."""
    try:  # noqa: SIM105
        leash.sendall(line.encode() + b"\n")
    except OSError:
        pass


def receive_order(leash: socket.socket) -> tuple[Order, list[int]]:
    """What to run, and the server's standard input, output and error."""
    header, ancillary, _, _ = leash.recvmsg(HEADER_SIZE, socket.CMSG_SPACE(3 * DESCRIPTOR_SIZE))
    pipes = received_descriptors(ancillary)
    missing = int.from_bytes(header, "little")
    chunks: list[bytes] = []
    while missing:
        chunks.append(leash.recv(missing))
        if not chunks[-1]:
            raise EOFError
        missing -= len(chunks[-1])
    order: Order = marshal.loads(b"".join(chunks))
    return order, pipes


def received_descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    """The descriptors that came with a message; from here on nobody inherits them through an exec."""
    descriptors = [number for _, _, data in ancillary for number in memoryview(data).cast("i")]
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return descriptors


def become(order: Order, pipes: list[int], launch: int, keeper: int) -> NoReturn:
    """Turn this fork into the server, or say on the launch pipe why not."""
    arguments, environment, directory, memory, processes = order
    stage = "session"
    try:
        os.setsid()
        tree.die_with_parent(keeper)
        for number, descriptor in enumerate(pipes):
            os.dup2(descriptor, number)
        reset_signals()
        stage = "directory"
        if directory is not None:
            os.chdir(directory)
        stage = "limits"
        limit(memory, processes)
        stage = "command"
        execute(arguments, environment)
    except OSError as error:
        os.write(launch, f"{stage} {error.errno}".encode())
    finally:
        os._exit(127)


def reset_signals() -> None:
    """Have the server start with default dispositions: what is ignored would stay so through the exec."""
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def limit(memory: int | None, processes: int | None) -> None:
    """Bound what the server may use, never above what we may use ourselves."""
    if memory is None and processes is None:
        return
    import resource  # noqa: PLC0415  (few servers have limits)

    for kind, amount in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_NPROC, processes)):
        if amount is not None:
            ceiling = resource.getrlimit(kind)[1]
            amount = amount if ceiling == resource.RLIM_INFINITY else min(amount, ceiling)
            resource.setrlimit(kind, (amount, amount))


def execute(arguments: list[bytes], environment: dict[bytes, bytes]) -> None:
    """Exec the first argument, looked up on the server's own PATH."""
    # os.execvpe would do the same, but imports warnings first.
    command = arguments[0]
    path = environment.get(b"PATH", os.defpath.encode())
    absent: OSError = FileNotFoundError(2, "not found")
    unfit: OSError | None = None
    for place in [b""] if b"/" in command else path.split(b":"):
        try:
            os.execve(os.path.join(place, command), arguments, environment)
        except (FileNotFoundError, NotADirectoryError) as error:
            absent = error
        except OSError as error:
            unfit = unfit or error  # says more than its absence elsewhere
    raise unfit or absent
