"""The tests of delegation pass on a base install too: what needs the extra is left out, and says so."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = 'import sys\n\nsys.modules["anthropic"] = None  # as if it were not installed\n'


@pytest.mark.requirement("S1-AC1..7")
def test_the_tests_of_delegation_pass_without_the_extra(tmp_path: Path) -> None:
    (tmp_path / "base_install.py").write_text(PLUGIN)
    left_out = ("-p", "no:cacheprovider", "-p", "no:xdist")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "base_install", *left_out, "tests/delegation"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|skipped)", ran.stdout)}
    assert counts["passed"] > 20
    assert counts["skipped"] > 20
