"""What the documents say is true."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import plait
from plait.cli.main import build_parser
from plait.config.options import OPTIONS, SERVER_OPTIONS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def rows(text: str) -> list[list[str]]:
    """The cells of every table row but headings."""
    found = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [cells for cells in found if not set(cells[0]) <= {"-", " "}]


def resolve(dotted: str) -> object:
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            value = getattr(value, name)
        return value
    raise AssertionError(f"{dotted} is nowhere")


@pytest.mark.parametrize("cells", rows((DOCS / "seeds.md").read_text())[1:], ids=lambda cells: cells[1])
def test_every_name_of_the_seeds_leads_to_something_real(cells: list[str]) -> None:
    assert resolve(cells[2].strip("`")) is not None


def test_every_public_name_is_what_it_says() -> None:
    for name in plait.__all__:
        assert getattr(plait, name) is not None
    assert set(dir(plait)) == set(plait.__all__)
    with pytest.raises(AttributeError, match="plait has no 'Nonsense'"):
        plait.Nonsense  # noqa: B018


def test_type_checkers_see_the_same_public_names() -> None:
    source = (ROOT / "src/plait/__init__.py").read_text()
    block = source[source.index("if TYPE_CHECKING") : source.index("__version__ =")]
    assert set(re.findall(r" as (\w+)$", block, re.MULTILINE)) == set(plait.__all__) - {"__version__"}


def test_importing_plait_imports_nothing_heavy() -> None:
    code = "import sys, plait; print([m for m in ('asyncio', 'msgspec', 'uvloop') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.requirement("S3-01")
def test_the_prefix_type_can_be_imported_without_a_protocol_library() -> None:
    code = (
        "import sys; from plait import MountPrefix; "
        "print([m for m in ('mcp', 'fastmcp', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


def test_every_setting_is_documented_and_nothing_else() -> None:
    text = (DOCS / "configuration.md").read_text()
    per_server, whole_file = text.split("## The file's own `plait` key")
    for part, options in ((per_server, SERVER_OPTIONS), (whole_file, OPTIONS)):
        for option in options:
            assert f"`{option.spellings[0]}`" in part


def test_every_command_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text()
    for action in build_parser()._actions:
        for name in action.choices or ():
            assert name == "up" or f"plait {name}" in readme
    assert "make up" in readme
    assert "make test" in readme


def test_links_between_documents_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_make_target_has_one_line_of_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in ["up", "test", "check", "lint", "types", "layers", "bench", "soak", "fix"]:
        assert re.search(rf"^{target}:.*## \S", makefile, re.MULTILINE), target


def test_the_call_list_in_the_architecture_is_the_real_one() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/call_trace.py")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.rstrip() in (DOCS / "architecture.md").read_text()


def test_each_source_module_has_a_reasonable_size_and_says_what_it_is_for() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        assert text.startswith('"""'), path
        assert text.count("\n") <= 330, f"{path} hides two things"
