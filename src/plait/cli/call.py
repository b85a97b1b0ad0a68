"""`plait call`: call one tool, through the same path as any client."""

import argparse

import msgspec

from plait.cli.exits import OK, TOOL_ERROR, UNEXPECTED, UNREACHABLE
from plait.cli.files import find
from plait.cli.loop import run as run_loop
from plait.cli.screen import Screen
from plait.cli.session import Looking, looking
from plait.cli.signature import read_pair
from plait.errors import ExecutionFailed, UpstreamError, UpstreamRefused
from plait.upstream.decoded import unwrap
from plait.wire.address import as_raw
from plait.wire.content import FAULT, extract_tool_result
from plait.wire.envelope import Fields


def run(options: argparse.Namespace) -> int:
    return run_loop(_call(options, Screen()))


async def _call(options: argparse.Namespace, screen: Screen) -> int:
    async with looking(find(options.config), screen) as seen:
        try:
            arguments = await _arguments(seen, options)
        except ValueError as problem:
            screen.note(f"error: {problem}")
            return UNEXPECTED
        try:
            result = await _send(seen, options.tool, arguments, screen)
        except UpstreamRefused as refused:
            screen.note(f"error: {refused.message} ({refused.code})")
            return TOOL_ERROR
        except UpstreamError as problem:
            screen.note(f"error: {problem}")
            return UNREACHABLE
        return _show(result, options.json, screen)


async def _arguments(seen: Looking, options: argparse.Namespace) -> dict[str, object]:
    """`--args` first, then each KEY=VALUE, read by what the tool's own schema says."""
    arguments: dict[str, object] = {}
    if options.args is not None:
        try:
            arguments = msgspec.json.decode(options.args, type=dict[str, object])
        except msgspec.MsgspecError as problem:
            raise ValueError(f"--args is no JSON object: {problem}") from None
    if options.pairs:
        schemas = {tool["name"]: tool.get("inputSchema") for tool in await seen.client.list_tools()}
        arguments.update(read_pair(pair, schemas.get(options.tool)) for pair in options.pairs)
    return arguments


async def _send(seen: Looking, tool: str, arguments: dict[str, object], screen: Screen) -> object:
    def show(progress: Fields) -> None:
        said = {key: msgspec.json.decode(value) for key, value in progress.items()}
        screen.progress(f"{said.get('progress')}/{said.get('total', '?')} {said.get('message', '')}")

    params = {"name": as_raw(tool), "arguments": as_raw(arguments)}
    reply = await seen.client.client.request("tools/call", params, on_progress=show)
    screen.progress("")
    return unwrap(reply)


def _show(result: object, as_json: bool, screen: Screen) -> int:
    failed = isinstance(result, dict) and result.get("isError") is True
    if as_json:
        screen.json(result)
    else:
        try:
            _show_blocks(result, screen)
        except ExecutionFailed as failure:
            screen.note(f"error: {failure.reason}")
    if not failed:
        return OK
    return UNREACHABLE if isinstance(result, dict) and FAULT in (result.get("_meta") or {}) else TOOL_ERROR


def _show_blocks(result: object, screen: Screen) -> None:
    """The text, and for what is no text a line that says what there is."""
    output = extract_tool_result(result)
    if not isinstance(output, dict) or "output" not in output or not isinstance(result, dict):
        screen.json(output)
        return
    if output["output"]:
        screen.whole(str(output["output"]))
    for block in result["content"]:
        if isinstance(block, dict) and block.get("type") != "text":
            about = block.get("mimeType") or block.get("uri") or ""
            screen.note(f"[{block.get('type')} {about}] (plait call --json shows all of it)")
