"""Servers in memory with scripted lists and answers, for tests: those of `plait.testing`."""

from plait.testing import Held, Message, Refusal, ScriptedServer
from plait.testing.script import item

__all__ = ["FakeServer", "HangingServer", "Held", "Message", "Refusal", "item", "text", "words"]

FakeServer = ScriptedServer


def text(words: str) -> Message:
    return {"content": [{"type": "text", "text": words}]}


def words(result: object) -> str:
    """The text of a tool's result."""
    assert isinstance(result, dict)
    return "".join(str(block["text"]) for block in result["content"])


class HangingServer(ScriptedServer):
    """A server that does not answer one method until it is told to."""

    def __init__(self, name: str, method: str = "initialize") -> None:
        super().__init__(name, tools=["t"])
        self.held = self.hang(method)

    def go_on(self) -> None:
        self.held.answer(self.greeting())
