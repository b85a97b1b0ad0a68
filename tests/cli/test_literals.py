"""Secrets that are written out among a server's arguments."""

import pytest

from plait.cli.literals import literal_secrets

GITHUB = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("arguments", "index", "option"),
    [
        (["--api-key", "correct-horse-7"], 1, "--api-key"),
        (["serve", "--api-key=correct-horse-7"], 1, "--api-key"),
        (["API_KEY=correct-horse-7"], 0, "API_KEY"),
        (["--password", "hunter22"], 1, "--password"),
        (["--verbose", GITHUB], 1, "--verbose"),
        ([GITHUB], 0, ""),
        (["--token", f"${{TOKEN:-{GITHUB}}}"], 1, "--token"),
        (["--header", "Authorization: Bearer abcdefghijklmnop"], 1, "--header"),
        (["postgres://user:pw12@db.example/main"], 0, ""),
        (["https://mcp.example/sse?token=abcdef123"], 0, ""),
        (["--key", "sk-" + "a1B2" * 8], 1, "--key"),
        (["x", "0123456789abcdef" * 2], 1, ""),
    ],
)
def test_it_is_found_by_its_option_or_by_its_looks(arguments: list[str], index: int, option: str) -> None:
    assert list(literal_secrets(arguments)) == [(index, option)]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--api-key", "${API_KEY}"],
        ["--api-key=${env:API_KEY}"],
        ["--header", "Authorization: Bearer ${TOKEN}"],
        ["--header", "Authorization:${AUTH}"],
        ["--token-file", "/run/secrets/token"],
        ["--token", "/run/secrets/token"],
        ["--token-env", "GITHUB_TOKEN"],
        ["-e", "GITHUB_PERSONAL_ACCESS_TOKEN"],
        ["--password", "--verbose"],
        ["--auth", "none"],
        ["--max-tokens", "4096000000"],
        ["/home/Alice/projects/2024/MyServer99/build/index-Final.js"],
        ["@modelcontextprotocol/server-filesystem@2025.8.21"],
        ["git+https://git.example/server@0123456789abcdef0123456789abcdef01234567"],
        ["image@sha256:" + "0123456789abcdef" * 4],
        ["--project", "123e4567-e89b-12d3-a456-426614174000"],
        ["postgres://user@db.example/main"],
    ],
)
def test_what_is_none_is_left_alone(arguments: list[str]) -> None:
    assert list(literal_secrets(arguments)) == []
