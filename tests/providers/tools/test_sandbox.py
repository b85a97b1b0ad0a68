import os
import sys
from pathlib import Path

import pytest

from plait.providers.tools import landlock
from plait.providers.tools.landlock import LOOK
from plait.providers.tools.sandbox import CHANGE, rules, sandbox_report

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="Landlock is Linux's")


def test_the_report_says_what_is_missing_in_sentences() -> None:
    report = sandbox_report()
    assert all(": commands " in sentence for sentence in report)
    assert any("root" in sentence for sentence in report) == (os.geteuid() == 0)


def test_only_the_given_folders_may_be_changed() -> None:
    rights = dict(rules(["/data"], ["/project"], network=False))
    assert rights["/project"] == CHANGE
    assert rights["/data"] == rights["/usr"] == LOOK
    assert "/root" not in rights
    assert "/home" not in rights
    assert "/run/systemd/resolve" not in rights
    assert "/run/systemd/resolve" in dict(rules([], [], network=True))


def test_each_version_takes_away_only_what_it_knows() -> None:
    assert landlock.file_rights(1) == (1 << 13) - 1
    assert landlock.file_rights(2) == (1 << 14) - 1
    assert landlock.file_rights(4) == landlock.file_rights(3) == (1 << 15) - 1
    assert landlock.file_rights(9) == landlock.file_rights(5) == (1 << 16) - 1


@linux_only
def test_the_kernel_says_why_it_refuses() -> None:
    kernel = landlock.Kernel()
    if kernel.version() == 0:
        pytest.skip("this kernel has no Landlock")
    with pytest.raises(OSError, match="Bad file descriptor"):
        kernel._add_rule(-1, "/usr", LOOK)


def test_a_path_that_is_not_there_needs_no_rule(tmp_path: Path) -> None:
    landlock.Kernel()._add_rule(-1, str(tmp_path / "nothing"), LOOK)
