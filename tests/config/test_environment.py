"""A child process gets what it needs, and none of our secrets."""

import subprocess
import sys

import pytest

from plait.config import ServerSettings, Settings, StdioServer, server_environment

OURS = {
    "HOME": "/home/ada",
    "PATH": "/usr/bin",
    "LANG": "C",
    "LC_ALL": "C.UTF-8",
    "LOGNAME": "ada",
    "SHELL": "/bin/sh",
    "TERM": "xterm",
    "TMPDIR": "/tmp",
    "USER": "ada",
    "ANTHROPIC_API_KEY": "canary",
    "LCX": "canary",
    "PATH_TO_KEYS": "canary",
    "PYTHONPATH": "canary",
}


@pytest.mark.requirement("K-14")
def test_a_secret_of_ours_never_reaches_a_child() -> None:
    environment = server_environment(StdioServer(command="x", env={"OWN": "1"}), Settings(), OURS)
    assert "canary" not in environment.values()
    assert environment.keys() == {
        *("HOME", "PATH", "LANG", "LC_ALL", "LOGNAME", "SHELL", "TERM", "TMPDIR", "USER", "OWN")
    }


@pytest.mark.requirement("K-14")
def test_a_real_child_sees_no_secret_of_ours() -> None:
    environment = server_environment(StdioServer(command="x"), Settings(), OURS)
    child = subprocess.run(
        [sys.executable, "-c", "import os; print(dict(os.environ))"],
        env=environment,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert b"HOME" in child.stdout
    assert b"canary" not in child.stdout


def test_names_that_are_listed_are_passed_on() -> None:
    server = StdioServer(command="x", settings=ServerSettings(env=("ONE", "ABSENT")))
    environment = server_environment(server, Settings(env=("TWO",)), {"ONE": "1", "TWO": "2", "THREE": "3"})
    assert environment == {"ONE": "1", "TWO": "2"}


def test_the_servers_own_value_goes_before_ours() -> None:
    server = StdioServer(command="x", env={"PATH": "/opt"}, settings=ServerSettings(env=("ONE",)))
    assert server_environment(server, Settings(), {"PATH": "/bin", "ONE": "1"}) == {
        "PATH": "/opt",
        "ONE": "1",
    }


def test_an_exported_shell_function_is_not_passed_on() -> None:
    server = StdioServer(command="x", settings=ServerSettings(env=("BASH_FUNC_x%%",)))
    ours = {"TERM": "() { :;}; echo", "BASH_FUNC_x%%": "() { :;}", "USER": "ada"}
    assert server_environment(server, Settings(), ours) == {"USER": "ada"}
