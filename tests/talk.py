"""Write a session test as the conversation it is: `>>` what the peer says, `<<` what we do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Machine(Protocol):
    def receive(self, line: bytes, /) -> Sequence[object]: ...


class Talk:
    """Every effect must be expected, in order, before the peer goes on."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._said: list[object] = []

    def __rshift__(self, line: str | bytes) -> Talk:
        assert not self._said, f"nobody expected {self._said}"
        self._said += self._machine.receive(line.encode() if isinstance(line, str) else line)
        return self

    def __lshift__(self, expected: object) -> Talk:
        assert self._said, f"expected {expected}, and nothing was said"
        assert expected == self._said.pop(0)
        return self

    def __bool__(self) -> bool:
        assert not self._said, f"nobody expected {self._said}"
        return True
