"""The audit of a real `plait mcp-server`: all kinds of calls, a client that goes, a kill (rows 26, 32)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import Gateway, write_config

pytestmark = pytest.mark.e2e

SERVER = {"command": sys.executable, "args": [str(Path(__file__).with_name("misbehaving.py"))]}


def gateway(folder: Path, mode: str = "best_effort", rules: object = ()) -> Gateway:
    audit = {"dir": str(folder / "audit"), "mode": mode}
    config = write_config(folder / "c.json", {"bad": SERVER}, {"audit": audit, "rules": rules})
    return Gateway(config)


def plait_audit(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "plait", "audit", *arguments, "-c", str(folder / "c.json")],
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ),
        check=False,
    )


def outcomes(folder: Path) -> list[tuple[object, object]]:
    lines = plait_audit(folder, "export", "--tool", "*").stdout.splitlines()
    records = [json.loads(line) for line in lines]
    return [(record["name"], record["outcome"]) for record in records if record["phase"] == "outcome"]


@pytest.mark.requirement("K-08")
@pytest.mark.parametrize("mode", ["best_effort", "strict"])
async def test_calls_of_every_kind_are_recorded_denials_too(tmp_path: Path, mode: str) -> None:
    rules = [{"deny": "bad__env", "unless": {"why": "asked"}}]
    async with gateway(tmp_path, mode, rules) as client:
        await client.shake_hands()
        await client.call("bad__echo", {"text": "a very private text", "password": "hunter2hunter2"})
        await client.call("bad__env")
        await client.call("bad__nothing")
        await client.call("bad__echo", {})
    assert outcomes(tmp_path) == [
        ("bad__echo", "ok"),
        ("bad__env", "denied"),
        ("bad__nothing", "tool_error"),
        ("bad__echo", "tool_error"),
    ]
    done = plait_audit(tmp_path, "verify")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "✓ 10 records in 1 stream, all there and unaltered\n"
    stored = b"".join(path.read_bytes() for path in (tmp_path / "audit").iterdir())
    assert b"private text" not in stored
    assert b"hunter2" not in stored
    assert b'"client":"test"' in stored


async def test_a_client_that_takes_its_call_back_or_goes_leaves_a_cancelled_one(tmp_path: Path) -> None:
    async with gateway(tmp_path) as client:
        await client.shake_hands()
        id = await client.ask("tools/call", {"name": "bad__slow", "arguments": {}})
        await client.call("bad__echo", {"text": "it has come that far"})
        await client.notify("notifications/cancelled", {"requestId": id})
        await client.call("bad__echo", {"text": "and that too"})
    assert ("bad__slow", "cancelled") in outcomes(tmp_path)
    assert plait_audit(tmp_path, "verify").returncode == 0


async def test_after_a_kill_the_chain_verifies_and_the_open_call_is_unknown(tmp_path: Path) -> None:
    async with gateway(tmp_path) as client:
        await client.shake_hands()
        await client.call("bad__echo", {"text": "x"})
        await client.ask("tools/call", {"name": "bad__slow", "arguments": {}})
        await client.call("bad__echo", {"text": "it has come that far"})
        client.process.kill()
        await client.process.wait()
    async with gateway(tmp_path) as client:
        await client.shake_hands()
        await client.call("bad__echo", {"text": "again"})
    done = plait_audit(tmp_path, "verify")
    assert done.returncode == 0, done.stdout
    assert "bad__slow (call 2, " in done.stdout
    assert "records in 2 streams, all there and unaltered" in done.stdout
    unknown = [name for name, outcome in outcomes(tmp_path) if outcome == "unknown"]
    assert unknown[0] == "bad__slow"
    assert set(unknown) <= {"bad__slow", "bad__echo"}, "the last outcome may have been on its way to the file"
