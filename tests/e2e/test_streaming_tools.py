"""Tools that stream, named by a file and served by a real `plait mcp-server`."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import LoggingMessageNotificationParams, TextContent

from gateway import PATIENCE, Gateway, Message, text_of, write_config
from processes import until

pytestmark = [
    pytest.mark.e2e,
    # `logging/setLevel` is still the way of the handshake era; the SDK says that it will go.
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]

TOOLS = '''
"""A model's words, one by one, from a process: a real activation."""

import asyncio
import os
import sys

from plait import FunctionProvider, NotFound, StreamEvent, ToolDefinition

SCRIPT = "import sys, time\\nfor word in sys.argv[1:]:\\n    print(word, flush=True)\\ntime.sleep({seconds})"


class ClaudeCode:
    namespace = "claudecode"

    async def list_tools(self):
        schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        return [ToolDefinition("chat", "Says it again, word by word.", schema), ToolDefinition("deep.think")]

    async def stream_tool(self, name, arguments):
        if name == "deep.think":
            yield {"type": "thinking", "about": "everything"}
            yield {"type": "data", "content": "42"}
            return
        if name != "chat":
            raise NotFound(name)
        words = arguments["query"].split()
        script = SCRIPT.format(seconds=arguments.get("seconds", 0))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, *words, stdout=asyncio.subprocess.PIPE
        )
        yield StreamEvent.start()
        try:
            for number in range(len(words)):
                word = (await process.stdout.readline()).decode().strip()
                yield StreamEvent.progress(number + 1, len(words))
                yield StreamEvent.error("no such word", recoverable=False) if word == "oops" else word + " "
            await process.wait()
            yield StreamEvent.done()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            with open(os.environ["ENDED"], "a") as file:
                print(process.pid, file=file)


async def count(upto: int):
    """Counts."""
    for number in range(upto):
        yield str(number)


def functions():
    return FunctionProvider("numbers", [count])
'''


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "streams.py").write_text(TOOLS)
    monkeypatch.setenv("ENDED", str(tmp_path / "ended"))
    servers = {
        "claudecode": {"type": "python", "module": "streams:ClaudeCode"},
        "numbers": {"type": "python", "module": "streams:functions", "plait": {"stream": {"items": 5}}},
    }
    return write_config(tmp_path / "plait.json", servers, {"separator": ".", "startWait": PATIENCE})


@pytest.fixture
def nowhere() -> Iterator[TextIO]:
    with open(os.devnull, "w") as file:
        yield file


def said(result: mcp.types.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


@pytest.mark.requirement("S4-02", "S4-07", "S4-09", "S4-10", "BP-18")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_of_either_era_calls_tools_that_stream(
    config: Path, nowhere: TextIO, mode: str
) -> None:
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "plait", "mcp-server", "-c", str(config)], env=dict(os.environ)
    )
    steps: list[tuple[float, float | None]] = []
    heard: list[tuple[str, str | None, object]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total))

    async def logged(params: LoggingMessageNotificationParams) -> None:
        heard.append((params.level, params.logger, params.data))

    async with asyncio.timeout(PATIENCE):
        async with mcp.Client(
            stdio_client(parameters, errlog=nowhere), mode=mode, logging_callback=logged, log_level="info"
        ) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == ["claudecode.chat", "claudecode.deep.think", "numbers.count"]
            if mode == "legacy":
                await client.set_logging_level("info")
            chat = await client.call_tool(
                "claudecode.chat", {"query": "three strands"}, progress_callback=progressed
            )
            assert (said(chat), chat.is_error) == (["three strands "], False)
            assert steps == [(1, 2), (2, 2)]
            assert heard == [
                ("info", "claudecode/chat", "three "),
                ("info", "claudecode/chat", "strands "),
            ]
            failed = await client.call_tool("claudecode.chat", {"query": "a oops b"})
            assert (said(failed), failed.is_error) == (["a ", "no such word", "b "], True)
            assert said(await client.call_tool("claudecode.deep.think", {})) == ["42"]
            assert said(await client.call_tool("numbers.count", {"upto": 3})) == ["012"]
            cut = await client.call_tool("numbers.count", {"upto": 10})
            assert (said(cut)[0], cut.is_error) == ("01234", True)
            with pytest.raises(mcp.MCPError, match="Invalid tool name format: 'no-dot-here'"):
                await client.call_tool("no-dot-here", {})


@pytest.mark.requirement("S4-03", "S4-06")
async def test_a_call_needs_the_handshake_and_a_cancelled_one_cleans_up_after_itself(
    config: Path, tmp_path: Path
) -> None:
    ended = tmp_path / "ended"
    async with Gateway(config) as gateway:
        early = await gateway.call("claudecode.chat", {"query": "x"})
        assert early["error"] == {"code": -32002, "message": "not initialized"}
        await gateway.shake_hands()
        params: Message = {"query": "one two", "seconds": 1000}
        meta = {"progressToken": "t"}
        id = await gateway.ask("tools/call", {"name": "claudecode.chat", "arguments": params, "_meta": meta})
        for _ in range(2):
            await gateway.heard("notifications/progress")
        assert not ended.exists()
        await gateway.notify("notifications/cancelled", {"requestId": id})
        await until(ended.exists, PATIENCE)
        assert text_of(await gateway.call("claudecode.chat", {"query": "still here"})) == "still here "
        assert [message for message in gateway.unread if message.get("id") == id] == []
    assert gateway.process.returncode == 0
    assert "Traceback" not in gateway.stderr
