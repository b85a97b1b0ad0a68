"""Every example of the guides runs and prints what it says, and the reference of tools is the real one."""

import argparse
import ast
import asyncio
import inspect
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

import tool_reference
from plait.assemble import assembled
from plait.cli.main import build_parser
from plait.config.load import load
from plait.config.model import Config, PythonServer
from plait.upstream.handshake import McpSession

ROOT = Path(__file__).resolve().parent.parent
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
SETTINGS = ROOT / "docs" / "configuration.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)
FILE_NAME = re.compile(r"# (\w+)\.py\n")
PATIENCE = 30


class Example(Struct):
    """One block of a page."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def module(self) -> str | None:
        """A block that begins with the name of a file is that file for the rest of its page."""
        named = FILE_NAME.match(self.text)
        return named[1] if named else None

    def saved(self) -> Path:
        """As a file in the current folder."""
        path = Path(f"{self.module}.py" if self.module else "plait.json").absolute()
        path.write_text(self.text)
        return path


def examples(*pages: Path) -> list[Example]:
    return [
        Example(page, page.read_text()[: match.start()].count("\n") + 1, match[1], match[2])
        for page in pages
        for match in BLOCK.finditer(page.read_text())
    ]


def in_language(language: str, *pages: Path) -> list[Example]:
    return [example for example in examples(*pages) if example.language == language]


@pytest.fixture
def example(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Example]:
    """The example, in a folder of its own beside the files that its page names."""
    chosen = request.param
    assert isinstance(chosen, Example)
    monkeypatch.chdir(tmp_path)
    files = [each.saved() for each in examples(chosen.page) if each.module]
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield chosen
    for file in files:
        sys.modules.pop(file.stem, None)


def run(example: Example) -> None:
    """As a program, or, where it awaits outside a function, as a notebook would."""
    lines = "\n" * example.line + example.text  # so that a traceback names the line of the page
    code = compile(lines, str(example.page), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waiting: object = eval(code, {"__name__": "__main__"})
    if inspect.iscoroutine(waiting):
        asyncio.run(asyncio.wait_for(waiting, PATIENCE))


@pytest.mark.requirement("S1-D6")
@pytest.mark.parametrize("example", in_language("python", *GUIDES), ids=str, indirect=True)
def test_an_example_prints_what_the_page_says(example: Example, capsys: pytest.CaptureFixture[str]) -> None:
    expected = PRINTED.findall(example.text)
    assert len(expected) == example.text.count("print("), "every print says what it prints"
    run(example)
    assert capsys.readouterr().out.splitlines() == expected


@pytest.mark.parametrize("example", in_language("json", *GUIDES, SETTINGS), ids=str, indirect=True)
async def test_a_configuration_on_a_page_is_read_without_complaint(example: Example) -> None:
    config = load([example.saved()], os.environ)
    assert config.problems == ()
    if config.servers and all(isinstance(server, PythonServer) for server in config.servers):
        await see_mounted(config)


async def see_mounted(config: Config) -> None:
    """Each of its servers is there, and has tools."""
    async with asyncio.timeout(PATIENCE), assembled(config, os.environ) as assembly:
        assert assembly.complaints == []
        async with await McpSession.connect(assembly.compositor.transport()) as client:
            names = [str(tool["name"]) for tool in await client.list_tools()]
    assert {name.partition("__")[0] for name in names} == {server.name for server in config.servers}


def test_no_example_is_in_a_language_that_no_test_looks_at() -> None:
    assert {example.language for example in examples(*GUIDES)} <= {"python", "json", ""}


def commands() -> list[str]:
    """What the pages tell people to type, without what is optional and without the explanation."""
    return [
        re.sub(r"\[.*?\]", "", re.split(r" {2,}", line)[0])
        for example in examples(*GUIDES, ROOT / "README.md")
        if example.language == ""
        for line in example.text.splitlines()
        if line.startswith("plait ")
    ]


@pytest.mark.parametrize("command", commands())
def test_a_command_on_a_page_can_be_typed(command: str) -> None:
    assert isinstance(build_parser().parse_args(shlex.split(command)[1:]), argparse.Namespace)


@pytest.mark.requirement("S1-D6")
async def test_the_reference_of_tools_is_the_real_one(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "tools.md").read_text()
    assert page.partition(tool_reference.MARK)[2] == await tool_reference.reference(tmp_path), (
        "run: python tests/tool_reference.py"
    )
