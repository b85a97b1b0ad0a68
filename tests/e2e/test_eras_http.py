"""Both eras over HTTP on both sides, with real processes: `plait up`, the official client and server."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import mcp
import pytest
from mcp.client.subscriptions import ToolsListChanged
from mcp.types import ElicitRequestParams, ElicitResult, PromptReference, TextContent, TextResourceContents

from gateway import Message, write_config
from processes import until
from served import PATIENCE, Served

pytestmark = pytest.mark.e2e

SERVER = str(Path(__file__).with_name("era_server.py"))
TOOLS = ["add", "count", "fail", "numbers", "who", "linger", "place"]
SERVERS = ["stdio handshake", "stdio modern", "http handshake", "http modern", "http auto"]
MODES = [("auto", "2026-07-28"), ("legacy", "2025-11-25")]
P = "io.modelcontextprotocol/"


@asynccontextmanager
async def web() -> AsyncIterator[str]:
    """The URL of the official server over HTTP, which speaks both eras."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, SERVER, "http"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(os.environ),
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.communicate()


@asynccontextmanager
async def plait(folder: Path, kind: str) -> AsyncIterator[Served]:
    """`plait up` with one such server."""
    where, era = kind.split()
    async with asyncio.timeout(3 * PATIENCE):
        if where == "stdio":
            entry: Message = {"command": sys.executable, "args": [SERVER], "plait": {"era": era}}
            async with Served(configured(folder, entry)) as served:
                yield served
            return
        async with web() as url, Served(configured(folder, {"url": url, "plait": {"era": era}})) as served:
            yield served


def configured(folder: Path, entry: Message) -> Path:
    return write_config(folder / "config.json", {"both": entry}, {"startWait": PATIENCE})


async def answer_anna(context: object, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Anna"})


def client_of(served: Served, mode: str) -> mcp.Client:
    return mcp.Client(
        served.url,
        mode=mode,
        read_timeout_seconds=PATIENCE,
        elicitation_callback=answer_anna,
        cache=None,
    )


def text_of(result: object) -> str:
    return "".join(str(getattr(block, "text", "")) for block in getattr(result, "content", []))


@pytest.mark.parametrize("kind", SERVERS)
async def test_the_official_client_of_either_era_uses_a_server_of_either_era(
    tmp_path: Path, kind: str
) -> None:
    async with plait(tmp_path, kind) as served:
        for mode, revision in MODES:
            async with client_of(served, mode) as client:
                assert client.protocol_version == revision
                await everything(client)


async def everything(client: mcp.Client) -> None:
    steps: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    names = [tool.name for tool in (await client.list_tools()).tools]
    assert set(names) >= {f"both__{name}" for name in TOOLS}
    added = await client.call_tool("both__add", {"a": 1, "b": 2})
    assert added.structured_content == {"result": 3}
    counted = await client.call_tool("both__count", {"to": 3}, progress_callback=progressed)
    assert (text_of(counted), steps) == ("counted to 3", [1, 2, 3])
    assert text_of(await client.call_tool("both__place", {"region": "\u00fc "})) == "in \u00fc "
    assert (await client.call_tool("both__fail", {})).is_error
    [contents] = (await client.read_resource("note://one")).contents
    assert isinstance(contents, TextResourceContents)
    assert contents.text == "the first note"
    [message] = (await client.get_prompt("both__greet", {"name": "x"})).messages
    assert isinstance(message.content, TextContent)
    assert message.content.text == "Say hello to x."
    reference = PromptReference(name="both__greet")
    completed = await client.complete(reference, {"name": "name", "value": "a"})
    assert completed.completion.values == ["anna", "anton"]
    with pytest.raises(mcp.MCPError):
        await client.read_resource("note://nowhere")


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_modern_client_listens_and_cancels_by_closing(tmp_path: Path, kind: str) -> None:
    mark = tmp_path / "mark"
    async with plait(tmp_path, kind) as served, client_of(served, "auto") as client:
        await client.list_tools()
        async with client.listen(tools_list_changed=True) as heard:
            assert heard.honored.tools_list_changed
            await client.call_tool("both__numbers", {})
            assert isinstance(await anext(aiter(heard)), ToolsListChanged)
        assert "both__late" in [tool.name for tool in (await client.list_tools()).tools]
        call = asyncio.get_running_loop().create_task(client.call_tool("both__linger", {"mark": str(mark)}))
        await until(lambda: mark.exists() and mark.read_text() == "began")
        call.cancel()
        await until(lambda: mark.read_text() == "stopped")
        assert text_of(await client.call_tool("both__add", {"a": 2, "b": 2})) == "4"
        await asyncio.wait((call,))


@pytest.mark.parametrize("kind", ["stdio modern", "http modern"])
async def test_a_question_in_the_middle_of_a_call_goes_its_rounds(tmp_path: Path, kind: str) -> None:
    async with plait(tmp_path, kind) as served:
        async with client_of(served, "auto") as client:
            assert text_of(await client.call_tool("both__who", {})) == "as it was: {'name': 'Anna'}"
        async with client_of(served, "legacy") as client:
            assert (await client.call_tool("both__who", {})).is_error


async def test_a_stream_is_ended_in_good_order_when_plait_stops(tmp_path: Path) -> None:
    async with plait(tmp_path, "http modern") as served, client_of(served, "auto") as client:
        await client.list_tools()
        async with client.listen(prompts_list_changed=True) as heard:
            assert await served.stop() == 0
            assert [event async for event in heard] == []  # an abrupt end would raise


async def test_headers_that_do_not_fit_are_refused_on_the_wire(tmp_path: Path) -> None:
    meta = {f"{P}protocolVersion": "2026-07-28", f"{P}clientCapabilities": {}}
    call = {"name": "both__place", "arguments": {"region": "eu"}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    right = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "both__place",
        "Mcp-Param-Region": "eu",
    }
    async with plait(tmp_path, "stdio handshake") as served, aiohttp.ClientSession() as session:

        async def post(headers: dict[str, str]) -> tuple[int, object]:
            async with session.post(served.url, json=body, headers=headers) as response:
                assert "Mcp-Session-Id" not in response.headers
                said = await response.json()
                return response.status, said.get("error", {}).get("code")

        assert await post(right) == (200, None)
        assert await post({**right, "Mcp-Param-Region": "us"}) == (400, -32020)
        for name in ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-Region"):
            less = {key: value for key, value in right.items() if key != name}
            assert await post(less) == (400, -32020), name
        for method in ("GET", "DELETE"):
            async with session.request(method, served.url, headers=right) as response:
                assert (response.status, response.headers["Allow"]) == (405, "POST")
