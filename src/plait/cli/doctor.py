"""`plait doctor`: what this machine has of what plait would use."""

import argparse
import os
import platform
import shutil

from msgspec import Struct

from plait.cli.exits import OK
from plait.cli.screen import Screen
from plait.version import VERSION


class Finding(Struct):
    what: str
    ok: bool
    detail: str


def run(options: argparse.Namespace) -> int:
    screen, findings = Screen(), examine()
    if options.json:
        screen.json({"version": VERSION, "findings": findings})
        return OK
    for finding in findings:
        screen.say(
            f"{'✓' if finding.ok else '!'} {finding.what}: {finding.detail}", "good" if finding.ok else "warn"
        )
    return OK


def examine() -> list[Finding]:
    from plait.providers.tools.sandbox import sandbox_report  # noqa: PLC0415  ctypes and the kernel's answers

    kernel = f"{platform.system()} {platform.release()}"
    findings = [
        Finding("plait", True, f"{VERSION} on Python {platform.python_version()}, {kernel}"),
        Finding("process trees", platform.system() == "Linux", _trees()),
        *_sandbox(sandbox_report()),
    ]
    findings += [
        Finding(name, path is not None, path or f"not on PATH ({os.environ.get('PATH', '')})")
        for name in ("node", "npx", "uvx", "docker")
        for path in [shutil.which(name)]
    ]
    return findings


def _sandbox(lacks: list[str]) -> list[Finding]:
    """Whatever is reported is something that the sandbox of exec_shell does without here."""
    if not lacks:
        return [Finding("sandbox", True, "complete: Landlock, no new privileges, limits")]
    return [Finding("sandbox", False, lack) for lack in lacks]


def _trees() -> str:
    if platform.system() == "Linux":
        return "a server's whole tree ends with it, also when plait is killed"
    return "no subreaper here: a grandchild that leaves its process group can survive"
