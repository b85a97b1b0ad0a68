"""What `plait token` does."""

import argparse
import os
import re
import time
from datetime import UTC, datetime

from plait.cli.exits import OK, UNEXPECTED
from plait.cli.screen import Screen
from plait.config.access import TokenSetting
from plait.config.http import is_token_name, read_time
from plait.downstream.token_file import add_token, read_tokens, revoke_token, tokens_path
from plait.errors import ConfigError

_SPAN = re.compile(r"([0-9]{1,5})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def run(options: argparse.Namespace) -> int:
    screen = Screen()
    match options.action:
        case "add":
            return _add(options, screen)
        case "revoke":
            return _revoke(options, screen)
        case _:
            return _list(options, screen)


def _add(options: argparse.Namespace, screen: Screen) -> int:
    if not is_token_name(options.name):
        raise ConfigError("a name has up to 64 of A-Z a-z 0-9 . _ @ -, and is not 'anonymous'")
    for count in (options.sessions, options.rate):
        if count is not None and count < 1:
            raise ConfigError("--sessions and --rate take a number from 1 on")
    expires = None if options.expires is None else _when(options.expires)
    setting = TokenSetting(
        name=options.name,
        sha256="",
        tools=None if options.tools is None else tuple(options.tools),
        expires=expires,
        sessions=options.sessions,
        rate=options.rate,
    )
    token = add_token(tokens_path(os.environ), setting)
    if options.json:
        screen.json({"name": options.name, "token": token, "expires": expires})
        return OK
    screen.note(f"the token of {options.name}; it is not kept anywhere and not shown again:")
    screen.whole(token)
    return OK


def _revoke(options: argparse.Namespace, screen: Screen) -> int:
    found = revoke_token(tokens_path(os.environ), options.name)
    if options.json:
        screen.json({"name": options.name, "revoked": found})
    elif found:
        screen.say(f"revoked {options.name}; a running plait takes it no longer")
    else:
        screen.note(f"error: there is no token {options.name!r}; see: plait token list")
    return OK if found else UNEXPECTED


def _list(options: argparse.Namespace, screen: Screen) -> int:
    tokens = read_tokens(tokens_path(os.environ))
    if options.json:
        screen.json({"tokens": [_described(token) for token in tokens]})
        return OK
    for token in tokens:
        screen.say(f"{token.name}  {_tools(token)}  {_expiry(token)}")
    if not tokens:
        screen.note("no tokens; make one with: plait token add NAME")
    return OK


def _described(token: TokenSetting) -> dict[str, object]:
    return {
        "name": token.name,
        "tools": token.tools,
        "expires": token.expires,
        "sessions": token.sessions,
        "rate": token.rate,
    }


def _tools(token: TokenSetting) -> str:
    return "all tools" if token.tools is None else " ".join(token.tools)


def _expiry(token: TokenSetting) -> str:
    if token.expires is None:
        return "never expires"
    when = datetime.fromtimestamp(token.expires, UTC).strftime("%Y-%m-%d %H:%MZ")
    return f"expired {when}" if time.time() >= token.expires else f"until {when}"


def _when(text: str) -> float:
    span = _SPAN.fullmatch(text)
    found = time.time() + int(span[1]) * _SECONDS[span[2]] if span else read_time(text)
    if found is None or found <= time.time():
        raise ConfigError(f"--expires {text}: give a time to come: 30d, 12h, or a date such as 2027-01-31")
    return found
