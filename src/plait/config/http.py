"""Read what a file says of clients over HTTP: who may come in, and where."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from plait.config import fields
from plait.config.access import OAuthSettings, Place, TokenSetting
from plait.config.codes import IMPOSSIBLE_VALUE
from plait.config.expand import Variables
from plait.config.layering import Joined
from plait.config.masking import quoted
from plait.config.reading import Expanding, Option, read_options
from plait.config.spot import Findings, Spot

# Strings, compiled (and kept) by re at their first use: most files need none.
_NAME = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}"
_DIGEST = r"[0-9a-f]{64}"
_PLACE = r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9.-]+)):(?P<port>[0-9]{1,5})"
_ORIGIN = r"https?://[A-Za-z0-9.\[\]:-]+"
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?"
_URL = r"https://[^\s?#@]+|http://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]+)?(?:/[^\s?#@]*)?"
_HIGHEST_PORT = 65535


def is_token_name(name: str) -> bool:
    """Whether somebody may be called this: no pattern, no name that means somebody else already."""
    return re.fullmatch(_NAME, name) is not None and name != "anonymous"


def read_time(text: str) -> float | None:
    """A date, or a date and a time, in UTC unless it says otherwise; None if it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()


def read_place(text: str) -> Place | None:
    """`host:port`; an address of IPv6 stands in brackets."""
    found = re.fullmatch(_PLACE, text)
    if found is None or int(found["port"]) > _HIGHEST_PORT:
        return None
    return Place(found["six"] or found["host"], int(found["port"]))


def listen(spot: Spot, findings: Findings) -> Place | None:
    found = fields.text(spot, findings)
    place = None if found is None else read_place(found)
    if found is not None and place is None:
        findings.report(
            IMPOSSIBLE_VALUE, spot, "expected an address and a port", "for example 127.0.0.1:7524"
        )
    return place


def _like(pattern: str, expected: str, hint: str) -> fields.Reader:
    """A reader of strings of one shape. What is there instead is not quoted: it may be a secret."""

    def read(spot: Spot, findings: Findings) -> str | None:
        found = fields.text(spot, findings)
        if found is None or re.fullmatch(pattern, found):
            return found
        findings.report(IMPOSSIBLE_VALUE, spot, f"expected {expected}", hint)
        return None

    return read


def _each_like(pattern: str, expected: str, hint: str) -> fields.Reader:
    one = _like(pattern, expected, hint)

    def read(spot: Spot, findings: Findings) -> tuple[str, ...] | None:
        if fields.texts(spot, findings) is None:
            return None
        found = [one(item, findings) for item in spot.items()]
        kept = tuple(each for each in found if isinstance(each, str))
        return kept if len(kept) == len(found) else None

    return read


def _time(spot: Spot, findings: Findings) -> float | None:
    found = fields.text(spot, findings)
    seconds = None if found is None else read_time(found)
    if found is not None and seconds is None:
        findings.report(IMPOSSIBLE_VALUE, spot, "expected a date", "for example 2027-01-31")
    return seconds


def _tokens(spot: Spot, findings: Findings, variables: Variables) -> Joined | None:
    if not isinstance(spot.node.value, dict):
        findings.wrong_type(spot, "an object with an object for each token")
        return None
    found = [_token(name, member, findings, variables) for name, member in spot.members()]
    return Joined(tuple(token for token in found if token is not None))


def _token(name: str, spot: Spot, findings: Findings, variables: Variables) -> TokenSetting | None:
    if not is_token_name(name):
        hint = "a name has up to 64 of A-Z a-z 0-9 . _ @ -, and is not 'anonymous'"
        findings.report(
            IMPOSSIBLE_VALUE, spot, f"{quoted(name)} cannot be a name", hint, offset=spot.key_offset
        )
        return None
    before = findings.errors
    values = read_options(spot, TOKEN_OPTIONS, findings, variables)
    if findings.errors == before and "sha256" not in values:
        hint = "`plait token add` makes one, and keeps its digest for you"
        findings.report(IMPOSSIBLE_VALUE, spot, "a token without 'sha256'", hint, offset=spot.key_offset)
    if findings.errors > before:
        return None
    return TokenSetting(name=name, **values)  # type: ignore[arg-type]  # each reader gives its field's type


def _oauth(spot: Spot, findings: Findings, variables: Variables) -> OAuthSettings | None:
    before = findings.errors
    values = read_options(spot, OAUTH_OPTIONS, findings, variables)
    for needed in ("issuer", "resource"):
        if findings.errors == before and needed not in values:
            findings.report(IMPOSSIBLE_VALUE, spot, f"oauth without '{needed}'", offset=spot.key_offset)
    if findings.errors > before:
        return None
    return OAuthSettings(**values)  # type: ignore[arg-type]  # each reader gives its field's type


def _scopes(spot: Spot, findings: Findings) -> dict[str, object] | None:
    return fields.entries(spot, findings, fields.texts, "an object with a list of patterns for each scope")


_url = _like(_URL, "an https URL", "http is possible for localhost only")

TOKEN_OPTIONS = (
    Option(
        "sha256",
        ("sha256",),
        _like(_DIGEST, "64 of 0-9 a-f", "it is the SHA-256 of the token, in hexadecimal"),
    ),
    Option("tools", ("tools",), fields.texts),
    Option("expires", ("expires",), _time),
    Option("sessions", ("sessions",), fields.whole(0)),
    Option("rate", ("rate",), fields.whole(1)),
)

OAUTH_OPTIONS = (
    Option("issuer", ("issuer",), _url),
    Option("resource", ("resource",), _url),
    Option("jwks_url", ("jwksUrl", "jwks_url"), _url),
    Option("scopes", ("scopes",), _scopes),
)

HTTP_OPTIONS = (
    Option(
        "allowed_hosts",
        ("allowedHosts", "allowed_hosts"),
        _each_like(_HOST, "a host", "for example gateway.example"),
    ),
    Option(
        "allowed_origins",
        ("allowedOrigins", "allowed_origins"),
        _each_like(_ORIGIN, "an origin", "for example https://app.example"),
    ),
    Option("tokens", ("tokens",), Expanding(_tokens)),
    Option("oauth", ("oauth",), Expanding(_oauth)),
    Option("session_idle", ("sessionIdle", "session_idle"), fields.seconds()),
    Option("max_sessions", ("maxSessions", "max_sessions"), fields.whole(1)),
    Option("max_connections", ("maxConnections", "max_connections"), fields.whole(1)),
)
"""Under `http`."""
