"""A real `plait mcp-server` process and a raw client on its pipes, for tests that send anything."""

import asyncio
import codecs
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 30.0
"""Seconds that any single wait of a test may take; failing tests end, passing ones never wait so long."""

Message = dict[str, object]


def write_config(
    path: Path, servers: Mapping[str, object], plait: Mapping[str, object] | None = None
) -> Path:
    document: dict[str, object] = {"mcpServers": servers}
    if plait is not None:
        document["plait"] = plait
    path.write_text(json.dumps(document))
    return path


class Gateway:
    """`async with Gateway(config) as gateway:` starts it; leaving closes its stdin and waits for its end."""

    def __init__(
        self,
        *configs: Path,
        arguments: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        files = [word for config in configs for word in ("-c", str(config))]
        self._argv = [sys.executable, "-m", "plait", "mcp-server", *files, *arguments]
        self._environ = dict(os.environ if environ is None else environ)
        self._cwd = cwd
        self._ids = iter(range(1, 1_000_000))
        self.stderr = ""
        """Its log, so far."""
        self.unread: list[Message] = []
        """Messages that came while another one was waited for."""

    async def __aenter__(self) -> Self:
        self.process = await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environ,
            cwd=self._cwd,
            limit=64 * 1024 * 1024,
        )
        self._log = asyncio.get_running_loop().create_task(self._read_log())
        return self

    async def _read_log(self) -> None:
        assert self.process.stderr is not None
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        while chunk := await self.process.stderr.read(1 << 16):
            self.stderr += decoder.decode(chunk)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.returncode is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                async with asyncio.timeout(PATIENCE):
                    await self.process.wait()
            except TimeoutError:
                self.process.kill()
                raise
        await self._log

    @property
    def pid(self) -> int:
        return self.process.pid

    # ---- speaking

    async def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        async with asyncio.timeout(PATIENCE):
            await self.process.stdin.drain()

    async def send(self, message: object) -> None:
        await self.send_bytes(json.dumps(message).encode() + b"\n")

    async def notify(self, method: str, params: Message | None = None) -> None:
        await self.send(
            {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}
        )

    async def ask(self, method: str, params: Message | None = None) -> int:
        """Send a request and return its id; `answer` waits for it."""
        id = next(self._ids)
        message: Message = {"jsonrpc": "2.0", "id": id, "method": method}
        await self.send(message if params is None else {**message, "params": params})
        return id

    async def request(self, method: str, params: Message | None = None) -> Message:
        """The whole answer, result or error."""
        return await self.answer(await self.ask(method, params))

    async def call(self, tool: str, arguments: Message | None = None, meta: Message | None = None) -> Message:
        params: Message = {"name": tool, "arguments": arguments or {}}
        return await self.request("tools/call", params if meta is None else {**params, "_meta": meta})

    async def shake_hands(self, capabilities: Message | None = None, revision: str = "2025-11-25") -> Message:
        answer = await self.request(
            "initialize",
            {
                "protocolVersion": revision,
                "capabilities": capabilities or {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        )
        await self.notify("notifications/initialized")
        return answer

    # ---- listening

    async def read_line(self) -> bytes:
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            return await self.process.stdout.readline()

    async def read(self) -> Message:
        """The next message, whatever it is."""
        line = await self.read_line()
        assert line, "the gateway closed its output"
        message = json.loads(line)
        assert isinstance(message, dict)
        return message

    async def answer(self, id: object) -> Message:
        return await self.until(lambda message: message.get("id") == id and "method" not in message)

    async def heard(self, method: str) -> Message:
        """The next notification or request of this method."""
        return await self.until(lambda message: message.get("method") == method)

    async def until(self, wanted: Callable[[Message], bool]) -> Message:
        for index, message in enumerate(self.unread):
            if wanted(message):
                return self.unread.pop(index)
        while True:
            message = await self.read()
            if wanted(message):
                return message
            self.unread.append(message)


def text_of(answer: Message) -> str:
    """The text of a tool's result."""
    result = answer["result"]
    assert isinstance(result, dict)
    return "".join(block["text"] for block in result["content"] if block.get("type") == "text")
