"""Which packages a command fetches without an exact version."""

import pytest

from plait.cli.packages import unpinned

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def names(command: str) -> list[str]:
    return [package.name for package in unpinned(command.split())]


@pytest.mark.parametrize(
    "command",
    [
        "npx -y @scope/server@1.2.3",
        "npx server@1.2.3-rc.1 --port 1",
        "npx --package=server@1.2.3 server",
        "npx -p a@1.2.3 -p b@0.0.1 run",
        "npx --registry https://r.example/ server@v1.2.3",
        "npx ./server",
        "npx /opt/server",
        f"npx github:user/project#{COMMIT}",
        "npx npm:server@1.2.3",
        "npx -c something",
        "npm exec -- server@1.2.3",
        "uvx server@1.2",
        "uvx --from server==1.2 run",
        "uvx --from server[extra]==1.2.post1 run",
        "uvx --python 3.12 server@1.2",
        "uvx --with a==1,b==2 server@1.2",
        f"uvx --from git+https://git.example/server@{COMMIT} server",
        "uvx --from https://f.example/server-1-py3-none-any.whl#sha256=abc server",
        "uvx --from ./checkout server",
        "pipx run server==1.2",
        "uvx",
        "npx -y",
        "npm start",
        "uv run server.py",
        "node server.js",
    ],
)
def test_an_exact_version_a_commit_a_digest_or_a_folder_is_enough(command: str) -> None:
    assert names(command) == []


@pytest.mark.parametrize(
    ("command", "fetched"),
    [
        ("npx server", ["server"]),
        ("npx -y @scope/server", ["@scope/server"]),
        ("npx -y @scope/server@latest", ["@scope/server"]),
        ("npx server@1", ["server"]),
        ("npx server@1.2", ["server"]),
        ("npx server@^1.2.3", ["server"]),
        ("npx server@~1.2.3", ["server"]),
        ("npx -- server", ["server"]),
        ("npx -p a -p b@1.2.3 run", ["a"]),
        ("npx --registry https://r.example/ server", ["server"]),
        ("npx github:user/project", ["github:user/project"]),
        ("npx user/project#main", ["user/project#main"]),
        ("npm exec server", ["server"]),
        ("npm x server", ["server"]),
        ("pnpm dlx server", ["server"]),
        ("yarn dlx server", ["server"]),
        ("bunx server", ["server"]),
        ("uvx server", ["server"]),
        ("uvx server@latest", ["server"]),
        ("uvx server>=1.2", ["server"]),
        ("uvx server==1.*", ["server"]),
        ("uvx --from server[extra] run", ["server"]),
        ("uvx --with a,b==2 server@1.2", ["a"]),
        ("uvx -q --refresh server", ["server"]),
        ("uv tool run server", ["server"]),
        ("pipx run server", ["server"]),
        ("pipx run --spec server run", ["server"]),
        ("uvx --from git+https://git.example/server@main server", ["git+https://git.example/server@main"]),
    ],
)
def test_anything_else_is_named(command: str, fetched: list[str]) -> None:
    assert names(command) == fetched


def test_the_remedy_is_in_the_runners_own_words() -> None:
    assert unpinned(["npx", "a"])[0].remedy.startswith("write a@VERSION,")
    assert "--from a==VERSION" in unpinned(["uvx", "a"])[0].remedy
    assert unpinned(["pipx", "run", "a"])[0].remedy.startswith("write a==VERSION,")
    assert "commit" in unpinned(["npx", "user/project"])[0].remedy


def test_a_token_in_an_address_is_not_repeated() -> None:
    [package] = unpinned(["uvx", "--from", "git+https://user:t0ken@git.example/server", "server"])
    assert "t0ken" not in repr(package)
