"""`plait token`: made, listed, revoked; shown once."""

import json
import time
from pathlib import Path

import pytest

from plait.cli.exits import CONFIG, OK, UNEXPECTED
from plait.cli.main import main
from plait.downstream.token_file import digest_of, read_tokens


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "plait" / "tokens.json"


Captured = pytest.CaptureFixture[str]


def test_a_token_is_shown_once_and_then_only_its_name(path: Path, capsys: Captured) -> None:
    assert (
        main(["token", "add", "alice", "--tools", "fs__*", "--tools", "git__log", "--expires", "30d"]) == OK
    )
    shown = capsys.readouterr()
    token = shown.out.strip()
    (kept,) = read_tokens(path)
    assert (kept.name, kept.tools, kept.sha256) == ("alice", ("fs__*", "git__log"), digest_of(token))
    assert kept.expires is not None
    assert abs(kept.expires - time.time() - 30 * 86400) < 600
    assert "not shown again" in shown.err
    assert main(["token", "list"]) == OK
    listed = capsys.readouterr().out
    assert listed.startswith("alice  fs__* git__log  until ")
    assert token not in listed
    assert main(["token", "revoke", "alice"]) == OK
    assert "revoked alice" in capsys.readouterr().out
    assert read_tokens(path) == ()


def test_programs_get_json(path: Path, capsys: Captured) -> None:
    main(["token", "add", "ci", "--json", "--sessions", "3", "--rate", "60"])
    made = json.loads(capsys.readouterr().out)
    assert (made["name"], made["expires"]) == ("ci", None)
    main(["token", "list", "--json"])
    (listed,) = json.loads(capsys.readouterr().out)["tokens"]
    assert listed == {"name": "ci", "tools": None, "expires": None, "sessions": 3, "rate": 60}
    main(["token", "revoke", "ci", "--json"])
    assert json.loads(capsys.readouterr().out) == {"name": "ci", "revoked": True}


def test_a_token_that_is_not_there_cannot_be_revoked(path: Path, capsys: Captured) -> None:
    assert main(["token", "revoke", "nobody"]) == UNEXPECTED
    assert "no token 'nobody'" in capsys.readouterr().err
    assert main(["token", "list"]) == OK
    assert "plait token add" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["anonymous"],
        ["a b"],
        ["*"],
        ["oauth:me"],
        [""],
        ["x" * 65],
        ["a", "--expires", "soon"],
        ["a", "--expires", "2001-01-01"],
        ["a", "--expires", "0d"],
        ["a", "--sessions", "0"],
        ["a", "--rate", "-1"],
    ],
)
def test_what_cannot_be_is_told_and_nothing_is_made(path: Path, words: list[str], capsys: Captured) -> None:
    assert main(["token", "add", *words]) == CONFIG
    assert capsys.readouterr().err.startswith("error: ")
    assert not path.exists()


def test_an_expired_token_is_listed_as_such(path: Path, capsys: Captured) -> None:
    main(["token", "add", "late", "--expires", "2200-01-01T00:00:00Z"])
    capsys.readouterr()
    path.write_text(path.read_text().replace("7258118400.0", "1000000000.0"))
    main(["token", "list"])
    assert "late  all tools  expired 2001-09-09 01:46Z" in capsys.readouterr().out
