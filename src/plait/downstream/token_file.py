"""The tokens of `plait token`, in a file that only its owner can read; of each only the digest is kept.

A token has 256 random bits, so there is nothing to guess and no list of likely ones to try: one SHA-256
says as little about it as a slow hash would. Slow hashes protect passwords, which people choose.
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import MsgspecError
from msgspec.json import decode, encode, format

from plait.config.access import TokenSetting
from plait.config.folders import state_folder
from plait.errors import ConfigError

MARK = "plait_"
"""What every token of ours begins with, so that scanners for leaked secrets can find one."""


def tokens_path(environ: Mapping[str, str]) -> Path:
    return state_folder(environ) / "tokens.json"


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def read_tokens(path: Path) -> tuple[TokenSetting, ...]:
    """What the file says. Raises ConfigError for one that cannot be trusted."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o022:
                raise ConfigError(f"{path}: others may write to this file; run: chmod 600 {path}")
            return decode(file.read(), type=tuple[TokenSetting, ...])
    except FileNotFoundError:
        return ()
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror}") from None
    except (MsgspecError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{path}: not a file of tokens: {problem}") from None


def add_token(path: Path, setting: TokenSetting) -> str:
    """Make a token with this name and these grants, and give it back: it is shown this one time."""
    token = MARK + secrets.token_urlsafe(32)
    with _changing(path) as tokens:
        if any(each.name == setting.name for each in tokens):
            raise ConfigError(
                f"there is a token {setting.name!r} already; revoke it first, or take another name"
            )
        made = TokenSetting(
            name=setting.name,
            sha256=digest_of(token),
            tools=setting.tools,
            expires=setting.expires,
            sessions=setting.sessions,
            rate=setting.rate,
        )
        tokens.append(made)
    return token


def revoke_token(path: Path, name: str) -> bool:
    """Forget it. Was there one?"""
    with _changing(path) as tokens:
        kept = [each for each in tokens if each.name != name]
        found = len(kept) < len(tokens)
        tokens[:] = kept
    return found


@contextlib.contextmanager
def _changing(path: Path) -> Iterator[list[TokenSetting]]:
    """Read, change and write back, one at a time."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tokens = list(read_tokens(path))
        before = tuple(tokens)
        yield tokens
        if tuple(tokens) != before:
            _write(path, tokens)


def _write(path: Path, tokens: Sequence[TokenSetting]) -> None:
    """Whole or not at all: a reader never sees half of it."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".tokens")  # for its owner only: 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(format(encode(tokens), indent=2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
