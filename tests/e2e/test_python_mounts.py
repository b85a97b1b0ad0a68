"""Providers of somebody's own package, named by a file and served by a real `plait mcp-server`."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway import Gateway, Message, text_of, write_config

pytestmark = pytest.mark.e2e

ECHO = Path(__file__).resolve().parent.parent / "echo_server.py"

GOOD = '''
"""A provider in each of the forms that a file may name."""

from plait import BuiltinToolProvider, CallToolResult, FunctionProvider, NotFound, ToolDefinition

print("a module may say what it likes")


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    import late  # found beside this file, long after the start

    return late.plus(a, b)


instance = FunctionProvider("ignored", [add])


class Own:
    """Nothing of ours but the interface."""

    namespace = "own"

    async def list_tools(self):
        return [ToolDefinition("shout", "Says it loudly.")]

    async def call_tool(self, name, arguments):
        if name != "shout":
            raise NotFound(name)
        print("so may a tool")
        return CallToolResult.text(arguments["text"].upper())


def make():
    return BuiltinToolProvider([ToolDefinition("echo")], lambda name, arguments: arguments["text"])
'''

BAD = {
    "raises.py": "raise ZeroDivisionError('not today')",
    "leaves.py": "import sys\nsys.exit('goodbye')",
    "broken.py": "def half(:\n",
    "needs.py": "import no_such_package_at_all\n",
    "odd.py": (
        "number = 7\n"
        "class Needy:\n    def __init__(self, what): pass\n"
        "def fails():\n    raise RuntimeError('no database')\n"
        "async def later():\n    pass\n"
        "def nothing():\n    return None\n"
    ),
}


def python(module: str) -> Message:
    return {"type": "python", "module": module}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with modules in it; plait is started elsewhere."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "tools.py").write_text(GOOD)
    (folder / "late.py").write_text("def plus(a, b):\n    return a + b\n")
    for name, source in BAD.items():
        (folder / name).write_text(source)
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


async def names(gateway: Gateway) -> list[object]:
    result = (await gateway.request("tools/list"))["result"]
    assert isinstance(result, dict)
    return [tool["name"] for tool in result["tools"]]


def result_of(answer: Message) -> Mapping[str, object]:
    result = answer["result"]
    assert isinstance(result, dict)
    return result


# ---- what works


async def test_an_instance_a_class_and_a_factory_are_served(project: Path, elsewhere: Path) -> None:
    servers = {
        "one": python("tools:instance"),
        "two": python("tools:Own"),
        "three": python("tools:make"),
        "echo": {"command": sys.executable, "args": [str(ECHO)]},
    }
    config = write_config(project / "plait.json", servers)
    async with Gateway(config, cwd=elsewhere) as gateway:
        await gateway.shake_hands()
        assert await names(gateway) == ["one__add", "two__shout", "three__echo", "echo__echo"]
        assert text_of(await gateway.call("one__add", {"a": 2, "b": 3})) == "5"
        assert text_of(await gateway.call("two__shout", {"text": "hé"})) == "HÉ"
        assert text_of(await gateway.call("three__echo", {"text": "hi"})) == "hi"
        wrong = result_of(await gateway.call("one__add", {"a": "x", "b": 3}))
        assert wrong["isError"] is True
        assert (await gateway.request("ping"))["result"] == {}
    assert gateway.process.returncode == 0
    assert "a module may say what it likes" in gateway.stderr, "and it is no part of the protocol"
    assert "so may a tool" in gateway.stderr
    assert "error" not in gateway.stderr


async def test_a_servers_own_settings_hold_for_it_too(project: Path, elsewhere: Path) -> None:
    entry = {**python("tools:Own"), "plait": {"prefix": "", "tools": ["sh*"]}}
    config = write_config(project / "plait.json", {"two": entry}, {"rules": [{"deny": "x"}]})
    async with Gateway(config, cwd=elsewhere) as gateway:
        await gateway.shake_hands()
        assert await names(gateway) == ["shout"]
        assert text_of(await gateway.call("shout", {"text": "a"})) == "A"


# ---- what does not


@pytest.mark.parametrize(
    ("module", "complaint"),
    [
        ("nowhere:provider", "No module named 'nowhere'"),
        ("tools.inner:provider", "No module named 'tools.inner'"),
        ("tools:nothing_like_it", "AttributeError: module 'tools' has no attribute 'nothing_like_it'"),
        (
            "odd:number",
            "or a server object of fastmcp or mcp, but of type int",
        ),
        ("odd:nothing", "of fastmcp or mcp, but of type NoneType"),
        ("odd:Needy", "TypeError: Needy.__init__() missing 1 required positional argument: 'what'"),
        ("odd:fails", "RuntimeError: no database"),
        ("odd:later", "an async function makes no provider here; write a plain one"),
        ("raises:provider", "ZeroDivisionError: not today"),
        ("leaves:provider", "SystemExit: goodbye"),
        ("broken:provider", "SyntaxError: "),
        ("needs:provider", "No module named 'no_such_package_at_all'"),
    ],
)
async def test_what_cannot_be_loaded_is_a_clear_complaint_and_the_rest_is_served(
    module: str, complaint: str, project: Path, elsewhere: Path
) -> None:
    servers = {"bad": python(module), "good": python("tools:Own")}
    config = write_config(project / "plait.json", servers)
    async with Gateway(config, cwd=elsewhere) as gateway:
        await gateway.shake_hands()
        assert await names(gateway) == ["good__shout"]
        assert text_of(await gateway.call("good__shout", {"text": "a"})) == "A"
        unknown = result_of(await gateway.call("bad__anything"))
        assert unknown["isError"] is True
    assert gateway.process.returncode == 0
    [told] = [
        line for line in gateway.stderr.splitlines() if "cannot load" in line or "is not a Tool" in line
    ]
    assert complaint in told
    assert f"{config}:1:" in told, "it says where the server is named"
    assert "Traceback" not in gateway.stderr
    assert "never awaited" not in gateway.stderr


async def test_a_module_that_is_missing_says_where_it_was_looked_for(project: Path, elsewhere: Path) -> None:
    config = write_config(project / "plait.json", {"bad": python("nowhere:provider")})
    async with Gateway(config, cwd=elsewhere) as gateway:
        await gateway.shake_hands()
    assert f"looked in the installed packages, {project}, {elsewhere}" in gateway.stderr


def test_check_tells_the_same_and_its_exit_code_says_so(project: Path, elsewhere: Path) -> None:
    config = write_config(
        project / "plait.json", {"bad": python("raises:provider"), "good": python("tools:make")}
    )
    done = plait("check", "-c", str(config), cwd=elsewhere)
    assert done.returncode == 7
    assert "✗ bad  cannot load raises:provider: ZeroDivisionError: not today" in done.stdout
    assert "✓ good  tools:make" in done.stdout


# ---- where modules are found


def plait(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """The command as it is installed: unlike `python -m plait` it does not begin with the current folder."""
    program = Path(sys.executable).with_name("plait")
    return subprocess.run(
        [program, *arguments], capture_output=True, text=True, cwd=cwd, timeout=60, check=False
    )


def test_the_current_folder_is_searched_after_that_of_the_file(project: Path, elsewhere: Path) -> None:
    (elsewhere / "here.py").write_text(GOOD.replace('"own"', '"here"'))
    (elsewhere / "tools.py").write_text("raise AssertionError('the one beside the file goes before')")
    config = write_config(project / "plait.json", {"a": python("here:Own"), "b": python("tools:Own")})
    done = plait("call", "-c", str(config), "a__shout", "text=a", cwd=elsewhere)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "A"), done.stderr
    assert plait("call", "-c", str(config), "b__shout", "text=b", cwd=elsewhere).returncode == 0


def test_a_file_beside_ours_takes_the_place_of_no_installed_package(project: Path, elsewhere: Path) -> None:
    for folder in (project, elsewhere):
        for name in ("json", "sqlite3", "msgspec", "aiohttp", "plait"):
            (folder / f"{name}.py").write_text(f"raise AssertionError('{name} is not meant')")
    config = write_config(project / "plait.json", {"a": python("tools:Own")}, {"builtin": True})
    done = plait("call", "-c", str(config), "builtin__memory_read", cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    assert plait("call", "-c", str(config), "a__shout", "text=a", cwd=elsewhere).returncode == 0


def test_a_file_without_such_servers_adds_no_folder_to_the_search(project: Path, elsewhere: Path) -> None:
    config = write_config(project / "plait.json", {"echo": {"command": sys.executable, "args": [str(ECHO)]}})
    code = (
        "import sys, json, os\n"
        "from plait.cli.main import main\n"
        f"main(['list', '-c', {str(config)!r}])\n"
        f"print(json.dumps({str(project)!r} in sys.path))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=elsewhere,
        timeout=60,
        check=True,
        env={**os.environ},
    )
    assert json.loads(done.stdout.splitlines()[-1]) is False
