"""Tokens: made once, kept as digests, found in constant time, gone at once."""

import hashlib
import json
import logging
import os
import stat
import time
from pathlib import Path

import pytest

from plait.config.access import TokenSetting
from plait.downstream.token_file import add_token, digest_of, read_tokens, revoke_token, tokens_path
from plait.downstream.tokens import TokenBook
from plait.errors import ConfigError
from plait.pipeline.grants import Grant, Identity


def wanted(name: str = "alice", **more: object) -> TokenSetting:
    return TokenSetting(name=name, sha256="", **more)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "plait" / "tokens.json"


def _write(path: Path, content: str) -> None:
    path.write_text(content)


async def whose(book: TokenBook, token: str) -> Identity | None:
    found = await book.identify(token)
    assert found is None or isinstance(found, Identity)
    return found


async def test_a_token_is_its_owners_name_everywhere(path: Path) -> None:
    token = add_token(path, wanted(tools=("fs__*",), sessions=3, rate=10))
    identity = await whose(TokenBook(path=path), token)
    assert identity == "alice"
    assert identity is not None
    assert (identity.grant, identity.sessions, identity.rate) == (Grant(("fs__*",)), 3, 10)


def test_a_token_cannot_be_guessed_and_is_kept_nowhere(path: Path) -> None:
    tokens = {add_token(path, wanted(f"n{number}")) for number in range(20)}
    assert len(tokens) == 20
    assert all(len(token.removeprefix("plait_")) >= 43 for token in tokens)
    text = path.read_text()
    assert not any(token in text or token.removeprefix("plait_") in text for token in tokens)
    assert {each.sha256 for each in read_tokens(path)} == {digest_of(token) for token in tokens}


def test_the_file_is_its_owners_alone(path: Path) -> None:
    add_token(path, wanted())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert sorted(each.name for each in path.parent.iterdir()) == ["tokens.json", "tokens.lock"]


def test_a_name_has_one_token(path: Path) -> None:
    add_token(path, wanted())
    with pytest.raises(ConfigError, match="already"):
        add_token(path, wanted())


async def test_a_revoked_token_counts_no_longer_and_a_new_one_at_once(path: Path) -> None:
    book = TokenBook(path=path)
    token = add_token(path, wanted())
    identity = await whose(book, token)
    assert identity is not None
    assert book.knows(identity)
    assert revoke_token(path, "alice")
    assert await whose(book, token) is None
    assert not book.knows(identity)
    assert not revoke_token(path, "alice")


async def test_a_token_whose_grants_changed_is_somebody_elses(path: Path) -> None:
    token = add_token(path, wanted())
    book = TokenBook(path=path)
    identity = await whose(book, token)
    assert identity is not None
    revoke_token(path, "alice")
    add_token(path, wanted(tools=("fs__read",)))
    assert not book.knows(identity)


async def test_a_token_expires() -> None:
    for seconds, valid in ((60, True), (-1, False)):
        setting = TokenSetting(name="a", sha256=digest_of("t"), expires=time.time() + seconds)
        book = TokenBook([setting])
        assert (await whose(book, "t") is not None) is valid
        assert book.knows(Identity("a")) is valid


@pytest.mark.parametrize(
    "token",
    ["", "t ", "T", "tt", "anonymous", "a", hashlib.sha256(b"t").hexdigest(), "é", "\udcff", "x" * 10_000],
)
async def test_whatever_is_not_the_token_is_nobodys(token: str) -> None:
    assert await whose(TokenBook([TokenSetting(name="a", sha256=digest_of("t"))]), token) is None


async def test_two_tokens_may_have_one_name_while_one_takes_the_others_place(path: Path) -> None:
    added = add_token(path, wanted())
    book = TokenBook([TokenSetting(name="alice", sha256=digest_of("old"))], path)
    assert await whose(book, added) == await whose(book, "old") == "alice"
    assert len(book) == 2


@pytest.mark.parametrize("content", ["{", '{"a":1}', '[{"name":"a"}]', '[{"name":1,"sha256":"x"}]'])
async def test_a_file_that_is_none_stops_the_start_and_later_lets_nobody_in(
    path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    token = add_token(path, wanted())
    book = TokenBook([TokenSetting(name="b", sha256=digest_of("b"))], path)
    _write(path, content)
    with pytest.raises(ConfigError, match="not a file of tokens"):
        TokenBook(path=path)
    with caplog.at_level(logging.ERROR):
        assert await whose(book, token) is None
    assert "not a file of tokens" in caplog.text
    assert await whose(book, "b") == "b"


def test_a_file_that_others_may_write_to_is_not_trusted(path: Path) -> None:
    add_token(path, wanted())
    path.chmod(0o622)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_tokens(path)


def test_a_file_that_cannot_be_read_says_so(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_tokens(path)


def test_a_write_that_fails_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_token(path, wanted())
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        add_token(path, wanted("bob"))
    assert path.read_bytes() == before
    assert not list(path.parent.glob(".tokens*"))


def test_the_file_lies_where_the_users_state_is() -> None:
    assert str(tokens_path({"XDG_STATE_HOME": "/x"})) == "/x/plait/tokens.json"


def test_the_file_is_json_that_a_person_can_read(path: Path) -> None:
    add_token(path, wanted(tools=("a*",)))
    (entry,) = json.loads(path.read_text())
    assert (entry["name"], entry["tools"]) == ("alice", ["a*"])
