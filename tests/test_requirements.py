"""Every requirement that docs/requirements.md calls met is claimed by a test, and the other way round."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "requirements.md").read_text()
MET, OPEN = PAGE.split("## Not yet")
ID = re.compile(r"\b(?:S\d-[A-Z]*\d[\d.]*|K-\d+|BC-\d+|BD-\d+|BP-\d+|X-\d+|G\d+)\b")


def claimed() -> set[str]:
    """The arguments of every `pytest.mark.requirement` in the tests."""
    ids: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        if "node_modules" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.requirement"):
                ids.update(ast.literal_eval(argument) for argument in node.args)
    return ids


def listed(part: str) -> set[str]:
    """The ids that begin a line of a list."""
    return {
        match[0]
        for line in part.splitlines()
        if line.startswith("- ")
        for match in [ID.match(line[2:])]
        if match
    }


def test_what_is_called_met_is_claimed_by_a_test() -> None:
    assert listed(MET) - claimed() == set()


def test_what_a_test_claims_is_called_met() -> None:
    assert claimed() - listed(MET) == set()


def test_what_is_not_yet_met_is_claimed_by_no_test() -> None:
    assert set(ID.findall(OPEN)) & claimed() == set()
