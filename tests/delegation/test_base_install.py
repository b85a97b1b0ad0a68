"""Without the extra everything else works, and without a delegation nothing of it is imported."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BLOCKED = """
import asyncio, json, os, sys
sys.modules["anthropic"] = None  # as if it were not installed
from plait import Client, Compositor
from plait.config.load import load

async def main():
    async with Compositor(load([sys.argv[1]], os.environ)) as compositor, Client(compositor) as client:
        names = [tool.name for tool in await client.list_tools()]
        texts = []
        for target in sys.argv[2:]:
            given = {"task": "x", "target": target}
            texts.append(str(await client.execute("delegate__delegate_task", given)))
    ours = sorted(name for name in sys.modules if name.startswith("plait.delegation"))
    print(json.dumps({"names": names, "texts": texts, "ours": ours}))

asyncio.run(main())
"""


def run(folder: Path, document: object, *targets: str) -> tuple[dict[str, list[str]], str]:
    """What a base install does with a configuration, and its log."""
    config = folder / "plait.json"
    config.write_text(json.dumps(document))
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED, str(config), *targets],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"XDG_STATE_HOME": str(folder), "ANTHROPIC_API_KEY": "hush", "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, list[str]] = json.loads(done.stdout)
    return told, done.stderr


@pytest.mark.requirement("S1-022", "S1-023", "S1-D7")
def test_without_a_delegation_nothing_of_it_is_imported(tmp_path: Path) -> None:
    told, _ = run(tmp_path, {"plait": {"builtin": True}, "delegation": {"excluded_tools": ["exec_shell"]}})
    assert told["ours"] == []
    assert "builtin__read_file" in told["names"]
    assert "delegate__delegate_task" not in told["names"]


@pytest.mark.requirement("S1-022", "S1-017")
def test_without_the_package_one_line_says_what_to_install(tmp_path: Path) -> None:
    told, log = run(tmp_path, {"delegation": {"claude_enabled": True}}, "auto", "claude")
    local, refused = told["texts"]
    assert '"status":"local"' in local
    line = "the package anthropic is not installed: pip install 'plait[delegate]'"
    assert line in refused
    assert log.count(line) == 1
    assert "hush" not in log + refused
