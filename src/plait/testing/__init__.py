"""For tests of programs that use plait: servers that follow a script, and calls to compare with."""

from plait.testing.matching import ToolCall as ToolCall
from plait.testing.matching import tool_call as tool_call
from plait.testing.script import Held as Held
from plait.testing.script import Message as Message
from plait.testing.script import Refusal as Refusal
from plait.testing.server import ScriptedServer as ScriptedServer
from plait.upstream.mock import MockTransport as MockTransport

__all__ = ["Held", "Message", "MockTransport", "Refusal", "ScriptedServer", "ToolCall", "tool_call"]
