import os
import stat
import subprocess
import sys
from pathlib import Path

from plait.upstream.container_claims import YOUNG, Claim, Engine, read_id, relevant

ENGINE = Engine("boxed", ("env", "TOKEN=hunter2", "docker"), {"PATH": "/bin\udc80", "DOCKER_HOST": "h"}, None)


def test_a_claim_is_its_owners_alone_until_it_is_released(tmp_path: Path) -> None:
    claim = Claim.create(tmp_path / "new", ENGINE)
    assert Claim.adopt(claim.path) is None
    claim.release()
    claim.release()
    adopted = Claim.adopt(claim.path)
    assert adopted is not None
    assert adopted.engine == ENGINE
    assert Claim.adopt(claim.path) is None
    adopted.forget()
    assert list((tmp_path / "new").iterdir()) == []
    assert Claim.adopt(claim.path) is None


def test_a_claim_whose_owner_was_killed_is_anybodys(tmp_path: Path) -> None:
    code = (
        "import os, sys, signal, pathlib\n"
        "from plait.upstream.container_claims import Claim, Engine\n"
        "Claim.create(pathlib.Path(sys.argv[1]), Engine('boxed', ('docker',), {}, None))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=30, check=False)
    (path,) = tmp_path.iterdir()
    claim = Claim.adopt(path)
    assert claim is not None
    assert claim.engine.words == ("docker",)
    claim.forget()


def test_nobody_else_can_read_a_claim_and_it_does_not_show_what_it_holds(tmp_path: Path) -> None:
    claim = Claim.create(tmp_path / "new", ENGINE)
    assert stat.S_IMODE(claim.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(claim.path.parent.stat().st_mode) == 0o700
    assert "hunter2" not in f"{claim!r} {claim.engine!r} {claim.path}"
    claim.forget()


def test_a_torn_claim_is_left_alone_while_it_may_still_be_written_and_dropped_later(tmp_path: Path) -> None:
    path = tmp_path / "0.json"
    path.write_text('{"server"')
    assert Claim.adopt(path) is None
    assert path.exists()
    os.utime(path, (0, 0))
    assert Claim.adopt(path) is None
    assert not path.exists()


def test_a_claim_is_young_for_a_while_after_it_was_touched(tmp_path: Path) -> None:
    claim = Claim.create(tmp_path, ENGINE)
    old = claim.path.stat().st_mtime - YOUNG - 1
    ages = [claim.young]
    os.utime(claim.path, (old, old))
    ages.append(claim.young)
    claim.touch()
    ages.append(claim.young)
    claim.forget()
    claim.touch()
    assert ages == [True, False, True]


def test_only_what_can_be_the_id_of_a_container_is_taken_for_one(tmp_path: Path) -> None:
    file = tmp_path / "x.cid"
    assert read_id(file) is None
    for text, id in {
        "": None,
        "abc123\n": "abc123",
        "-f": None,
        "a b": None,
        "é": None,
        "a" * 200: None,
    }.items():
        file.write_text(text)
        assert read_id(file) == id


def test_an_engine_gets_the_variables_that_lead_to_its_daemon_and_no_others() -> None:
    kept = {"PATH": "p", "HOME": "h", "DOCKER_HOST": "d", "CONTAINER_HOST": "c", "XDG_RUNTIME_DIR": "x"}
    assert relevant({**kept, "API_KEY": "hunter2", "GITHUB_TOKEN": "x"}) == kept
