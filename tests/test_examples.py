"""The examples run as they are, and do what they say."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


@pytest.mark.requirement("S3-03")
def test_the_agent_calls_its_tools_until_it_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "agent.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "notes__write: kept 'hair'",
        "notes__read: three strands",
        "A plait has three strands.",
    ]


def test_no_example_is_without_a_test() -> None:
    assert [path.name for path in EXAMPLES.glob("*.py")] == ["agent.py"]
