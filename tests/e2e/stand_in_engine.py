"""A stand-in for docker and podman: its containers are files, and stay when its process is killed.

Usage: stand_in_engine.py FOLDER WORDS. `run` makes a container and runs the words after the image as its
process; `rm -f` and `ps` do what they should. Standard library only. What it finds in FOLDER changes it:

    refuse-run    fail before there is a container        refuse-rm   fail to remove one
    slow-id       make a container, and hang before its id is written down
    slow-create   hang before there is a container        slow-rm     hang in `rm`

Every call is appended to FOLDER/calls, with what it sees of the environment.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

VALUED = ("--cidfile", "--label", "--name", "--context", "-H", "-e")
NO_DAEMON = "Cannot connect to the daemon. Is it running?"


def main(folder: Path, words: list[str]) -> int:
    call = {"words": words, "host": os.environ.get("DOCKER_HOST"), "secret": os.environ.get("SECRET")}
    with (folder / "calls").open("a") as calls:
        calls.write(json.dumps(call) + "\n")
    match taken_apart(words)[1]:
        case ["container", "run", *rest] | ["run", *rest]:
            options, command = taken_apart(rest)
            return run(folder, options, command[1:])
        case ["rm", "-f", id]:
            return remove(folder, id)
        case ["ps", *_, mark]:
            print(*(path.name for path in containers(folder) if mark == f"label={facts(path)['--label']}"))
            return 0
    return fail("unknown command")


def taken_apart(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options in front, and the other words."""
    options: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name, equals, value = rest.pop(0).partition("=")
        options[name] = value if equals or name not in VALUED else rest.pop(0)
    return options, rest


def run(folder: Path, options: dict[str, str], command: list[str]) -> int:
    cidfile = Path(options["--cidfile"]) if "--cidfile" in options else None
    if cidfile is not None and cidfile.exists():
        return fail("container ID file found")
    if any(facts(path)["--name"] == options.get("--name", "") != "" for path in containers(folder)):
        return fail("the container name is already in use")
    if cidfile is not None:
        cidfile.touch()
    wait_while(folder / "slow-create")
    if (folder / "refuse-run").exists():
        if cidfile is not None:
            cidfile.unlink()
        return fail(NO_DAEMON)
    id = os.urandom(32).hex()
    container = folder / "containers" / id
    container.write_text(json.dumps({"--label": options.get("--label"), "--name": options.get("--name", "")}))
    wait_while(folder / "slow-id")
    if cidfile is not None:
        cidfile.write_text(id)
    code = subprocess.call(command)
    if "--rm" in options:
        container.unlink()
    return code


def remove(folder: Path, id: str) -> int:
    wait_while(folder / "slow-rm")
    if (folder / "refuse-rm").exists():
        return fail(NO_DAEMON)
    container = folder / "containers" / id
    if not container.exists():
        return fail(f"Error response from daemon: No such container: {id}")
    container.unlink()
    return 0


def containers(folder: Path) -> list[Path]:
    return list((folder / "containers").iterdir())


def facts(container: Path) -> dict[str, str]:
    found: dict[str, str] = json.loads(container.read_text())
    return found


def wait_while(path: Path) -> None:
    while path.exists():
        time.sleep(0.01)


def fail(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 125


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
