"""Which packages a command fetches when it starts (npx, uvx and their kin) without saying which version."""

import re
from collections.abc import Sequence

from msgspec import Struct

from plait.config.masking import mask_url


class Runner(Struct, frozen=True):
    """A program that fetches a package and runs it."""

    words: tuple[str, ...]
    """How its command begins."""
    python: bool
    replacing: frozenset[str]
    """Options that name the package; the first plain word is then the program in it."""
    adding: frozenset[str]
    """Options that name further packages, with commas between them."""
    valued: frozenset[str]
    """Other options that are followed by a value."""


_NPM_VALUES = (
    "-c --call -w --workspace --registry --cache --prefix --userconfig --loglevel --script-shell "
    "--node-options"
)
_UV_VALUES = (
    "-p --python -i --index-url --extra-index-url --index --default-index -f --find-links --cache-dir "
    "--directory --project --config-file --env-file -c --constraints --overrides -b --build-constraints "
    "--exclude-newer --resolution --prerelease --index-strategy --keyring-provider --link-mode "
    "--python-platform -P --upgrade-package --refresh-package --with-editable --with-requirements --color"
)


def _npm(words: str) -> Runner:
    options = frozenset(("-p", "--package"))
    return Runner(tuple(words.split()), False, options, frozenset(), frozenset(_NPM_VALUES.split()))


def _uv(words: str, replacing: str, adding: str, valued: str) -> Runner:
    return Runner(
        tuple(words.split()),
        True,
        frozenset(replacing.split()),
        frozenset(adding.split()),
        frozenset(valued.split()),
    )


_RUNNERS = (
    *map(_npm, ("npx", "npm exec", "npm x", "pnpx", "pnpm dlx", "yarn dlx", "bunx", "bun x")),
    *(_uv(words, "--from", "--with -w", _UV_VALUES) for words in ("uvx", "uv tool run")),
    _uv("pipx run", "--spec", "", "--python --index-url -i --pip-args"),
)

_LOCAL = (".", "/", "~", "file:")
# A commit, or the digest of a file: what is fetched is always the same.
_FIXED = re.compile(r"[@#][0-9a-f]{40}\b|#(?:.*&)?sha(?:256|512)=")
_NPM_VERSION = re.compile(r".@v?\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]+)?\Z")
_PYTHON_VERSION = re.compile(r".(?:@|===?)\s*v?\d[0-9A-Za-z.!+-]*\Z")
_PYTHON_NAME_END = re.compile(r"[@=<>~!\[;\s]")


class Package(Struct, frozen=True):
    """A package that is fetched in whatever version there is."""

    runner: str
    name: str
    """As it may be shown: an address without user information."""
    remedy: str
    """What to write instead."""


def unpinned(words: Sequence[str]) -> list[Package]:
    """What this command fetches without an exact version; `words[0]` is a program's bare name."""
    for runner in _RUNNERS:
        if tuple(words[: len(runner.words)]) == runner.words:
            named = _named(runner, words[len(runner.words) :])
            return [_package(runner, spec) for spec in named if spec and not _is_pinned(spec, runner.python)]
    return []


def _package(runner: Runner, spec: str) -> Package:
    name, program = _name(spec, runner.python), " ".join(runner.words)
    if _is_address(spec):
        return Package(program, name, "name a commit by all of its 40 digits, or the sha256 of the file")
    if program == "pipx run":
        written = f"{name}==VERSION"
    elif runner.python:
        written = f"{name}@VERSION, or --from {name}==VERSION"
    else:
        written = f"{name}@VERSION"
    return Package(program, name, f"write {written}, with the exact version that you have tried")


def _named(runner: Runner, arguments: Sequence[str]) -> list[str]:
    """Every package that the arguments name."""
    found: list[str] = []
    replaced = False
    words = iter(arguments)
    for word in words:
        if not word.startswith("-") or word == "--":
            first = next(words, "") if word == "--" else word
            return found if replaced else [first, *found]
        option, given, value = word.partition("=")
        if option not in runner.replacing | runner.adding | runner.valued:
            continue
        value = value if given else next(words, "")
        if option in runner.replacing:
            found.append(value)
            replaced = True
        elif option in runner.adding:
            found.extend(each.strip() for each in value.split(","))
    return found


def _is_address(spec: str) -> bool:
    """A repository or a file somewhere, not a package of a registry: `github:user/project`, a URL."""
    return (":" in spec and not spec.startswith("npm:")) or ("/" in spec and not spec.startswith("@"))


def _is_pinned(spec: str, python: bool) -> bool:
    if spec.startswith(_LOCAL) or _FIXED.search(spec):
        return True
    if _is_address(spec):
        return False
    return (_PYTHON_VERSION if python else _NPM_VERSION).search(spec) is not None


def _name(spec: str, python: bool) -> str:
    """Without what it says about a version."""
    if "://" in spec:
        return mask_url(spec)
    if python:
        return _PYTHON_NAME_END.split(spec)[0]
    head, at, _ = spec.rpartition("@")
    return head if at and head else spec
