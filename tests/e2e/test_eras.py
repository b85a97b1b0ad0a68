"""Both eras on both sides, with real processes and the official SDK's client and server."""

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import mcp
import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import ElicitRequestParams, ElicitResult, PromptReference, TextContent, TextResourceContents

from gateway import PATIENCE, Gateway, Message, text_of, write_config
from raw_peer import RawPeer

pytestmark = pytest.mark.e2e

PATIENT: Message = {"startWait": PATIENCE}
"""On a busy machine the server takes its time, and its lists are waited for."""
SERVER = str(Path(__file__).with_name("era_server.py"))
TOOLS = ["add", "count", "fail", "numbers", "who", "linger", "place"]
P = "io.modelcontextprotocol/"
STAMP: Message = {f"{P}protocolVersion": "2026-07-28", f"{P}clientCapabilities": {}}


def configured(folder: Path, era: str) -> Path:
    entry = {"command": sys.executable, "args": [SERVER], "plait": {"era": era}}
    return write_config(folder / "config.json", {"both": entry}, PATIENT)


@pytest.fixture
def nowhere() -> Iterator[TextIO]:
    with open(os.devnull, "w") as file:
        yield file


@pytest.mark.parametrize("era", ["handshake", "modern", "auto"])
@pytest.mark.parametrize(("mode", "revision"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
async def test_the_official_client_of_either_era_uses_a_server_of_either_era(
    tmp_path: Path, nowhere: TextIO, era: str, mode: str, revision: str
) -> None:
    command = ["-m", "plait", "mcp-server", "-c", str(configured(tmp_path, era))]
    parameters = StdioServerParameters(command=sys.executable, args=command)
    steps: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with asyncio.timeout(PATIENCE):
        async with mcp.Client(stdio_client(parameters, errlog=nowhere), mode=mode) as client:
            assert client.protocol_version == revision
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == [f"both__{name}" for name in TOOLS]
            added = await client.call_tool("both__add", {"a": 1, "b": 2})
            assert added.structured_content == {"result": 3}
            counted = await client.call_tool("both__count", {"to": 3}, progress_callback=progressed)
            assert isinstance(counted.content[0], TextContent)
            assert counted.content[0].text == "counted to 3"
            assert steps == [1, 2, 3]
            assert (await client.call_tool("both__fail", {})).is_error
            resource, *ours = (await client.list_resources()).resources
            assert str(resource.uri) == "note://one"
            assert all(str(each.uri).startswith("compositor://") for each in ours)
            [contents] = (await client.read_resource("note://one")).contents
            assert isinstance(contents, TextResourceContents)
            assert contents.text == "the first note"
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["both__greet"]
            [message] = (await client.get_prompt("both__greet", {"name": "x"})).messages
            assert isinstance(message.content, TextContent)
            assert message.content.text == "Say hello to x."
            reference = PromptReference(name="both__greet")
            completed = await client.complete(reference, {"name": "name", "value": "a"})
            assert completed.completion.values == ["anna", "anton"]
            with pytest.raises(mcp.MCPError):
                await client.read_resource("note://nowhere")


async def answer_anna(context: object, params: ElicitRequestParams) -> ElicitResult:
    assert params.message == "[both] Who?"
    return ElicitResult(action="accept", content={"name": "Anna"})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_modern_servers_question_reaches_a_modern_client_and_fails_another_ones_call(
    tmp_path: Path, nowhere: TextIO, mode: str
) -> None:
    command = ["-m", "plait", "mcp-server", "-c", str(configured(tmp_path, "modern"))]
    transport = stdio_client(StdioServerParameters(command=sys.executable, args=command), errlog=nowhere)
    async with asyncio.timeout(PATIENCE):
        async with mcp.Client(transport, mode=mode, elicitation_callback=answer_anna) as client:
            result = await client.call_tool("both__who", {})
    assert isinstance(result.content[0], TextContent)
    if mode == "auto":
        assert result.content[0].text == "as it was: {'name': 'Anna'}"
    else:
        assert result.is_error
        assert "cannot put such a question" in result.content[0].text


def params(**more: object) -> Message:
    return {**more, "_meta": STAMP}


async def test_one_process_serves_both_eras_at_once(tmp_path: Path) -> None:
    async with Gateway(configured(tmp_path, "auto")) as gateway:
        found = (await gateway.request("server/discover", params()))["result"]
        assert isinstance(found, dict)
        assert found["supportedVersions"] == ["2026-07-28"]
        assert found["resultType"] == "complete"
        assert found["_meta"][f"{P}serverInfo"]["name"] == "plait"
        assert set(found["capabilities"]) >= {"tools", "resources", "prompts"}
        call = await gateway.ask("tools/call", params(name="both__add", arguments={"a": 1, "b": 1}))
        await gateway.shake_hands()
        assert text_of(await gateway.answer(call)) == "2"
        old = (await gateway.call("both__add", {"a": 2, "b": 2}))["result"]
        assert isinstance(old, dict)
        assert "resultType" not in old
        new = (await gateway.request("tools/list", params()))["result"]
        assert isinstance(new, dict)
        assert (new["resultType"], new["cacheScope"]) == ("complete", "private")
        refused = (await gateway.request("tools/list", {"_meta": {f"{P}protocolVersion": "2026-07-28"}}))[
            "error"
        ]
        assert isinstance(refused, dict)
        assert refused["code"] == -32602


@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_modern_client_listens_over_stdio(tmp_path: Path, era: str) -> None:
    async with Gateway(configured(tmp_path, era)) as gateway:
        await gateway.request("tools/list", params())
        listen = await gateway.ask(
            "subscriptions/listen", params(notifications={"toolsListChanged": True, "taskIds": ["t"]})
        )
        acknowledged = await gateway.heard("notifications/subscriptions/acknowledged")
        assert acknowledged["params"] == {
            "notifications": {"toolsListChanged": True},
            "_meta": {f"{P}subscriptionId": listen},
        }
        await gateway.request("tools/call", params(name="both__numbers", arguments={}))
        changed = await gateway.heard("notifications/tools/list_changed")
        assert changed["params"] == {"_meta": {f"{P}subscriptionId": listen}}
        assert gateway.process.stdin is not None
        gateway.process.stdin.close()
        ended = (await gateway.answer(listen))["result"]
        assert isinstance(ended, dict)
        assert ended["resultType"] == "complete"


async def test_a_server_that_ends_at_the_probe_is_started_again_at_once(tmp_path: Path) -> None:
    """As servers on one SDK do: any request before `initialize` ends them."""
    script = tmp_path / "strict.py"
    script.write_text(STRICT)
    config = write_config(
        tmp_path / "config.json", {"strict": {"command": sys.executable, "args": [str(script)]}}, PATIENT
    )
    async with Gateway(config) as gateway:
        assert text_of(await gateway.request("tools/call", params(name="strict__echo"))) == "fine"


STRICT = """
import json, sys
ready = False
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if not ready and method != "initialize":
        sys.exit(1)
    ready = True
    results = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}},
        "tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]},
    }
    result = results.get(method, {"content": [{"type": "text", "text": "fine"}]})
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def test_payloads_pass_from_a_handshake_server_to_a_modern_client_unread(tmp_path: Path) -> None:
    peer = RawPeer(tmp_path)
    odd = b'{"content":[{"type":"hologram","x":1e400}],"odd":{"b":1,"a":[1.0,12345678901234567890]}}'
    peer.says("tools/call", "result", odd)
    async with Gateway(peer.config()) as gateway:
        id = await gateway.ask("tools/call", params(name="raw__echo", arguments={}))
        line = await gateway.read_line()
    assert f'"id":{id}'.encode() in line
    for piece in (b'[{"type":"hologram","x":1e400}]', b'{"b":1,"a":[1.0,12345678901234567890]}'):
        assert piece in line
