"""Take secrets out of what is stored: by the name they are under, by their type, and by their looks.

When in doubt a value is taken out: a record without it is still a record. Names of tools never are,
since a name that ends in a hash looks like a secret.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping

REDACTED = "[redacted]"

# ---- by name

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# A string, like the rules below: re compiles it, and keeps it, when it is needed for the first time.
_SECRET_NAME = (
    r"(?:^|_)(?:"
    r"apikey|auth|authorization|bearer|cookies?|credentials?|cvc|cvv|dsn|jwt|mfa|otp|totp|pass|passcode"
    r"|passphrase|passwd|passwords?|pin|privatekey|psk|pwd|secrets?|ssn|token"
    r"|(?:access|account|api|client|encryption|license|master|private|secret|session|shared|signing|ssh|storage)_key"
    r"|connection_string|session_id|webhook_url"
    # What is said about a model's tokens, or about where to get one, is no secret.
    r")(?:$|_(?!budget|count|endpoint|length|limit|size|type|uri|url|usage))"
)


def is_secret_name(name: str) -> bool:
    """Whether a value under this name is a secret: `apiKey`, `db_password`, `X-Auth-Token` …"""
    return re.search(_SECRET_NAME, "_".join(_WORD.findall(name)).lower()) is not None


# ---- by type


def secret_parameters(schema: object) -> frozenset[str]:
    """The names, at any depth, of parameters whose schema says that they are secret."""
    found: set[str] = set()
    _collect(schema, found, 0)
    return frozenset(found)


def _collect(schema: object, found: set[str], depth: int) -> None:
    if depth > 16:
        return
    if isinstance(schema, list):
        for each in schema:
            _collect(each, found, depth + 1)
    if not isinstance(schema, Mapping):
        return
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        found.update(str(name) for name, declared in properties.items() if _says_secret(declared))
    for value in schema.values():
        _collect(value, found, depth + 1)


def _says_secret(declared: object) -> bool:
    if not isinstance(declared, Mapping):
        return False
    marked = any(declared.get(mark) is True for mark in ("writeOnly", "x-secret", "secret", "sensitive"))
    return marked or declared.get("format") in ("password", "secret")


# ---- by looks


def _rule(hints: str, pattern: str) -> tuple[tuple[str, ...], str]:
    """The pattern is tried only on text that holds, in small letters, one of the hints.

    It begins where a run of word characters begins, and repeats only what cannot begin it anew, so
    hostile text costs no more than its length.
    """
    return tuple(hints.split()), rf"(?<![\w-])(?:{pattern})"


# Tokens that somebody's service gives out have a long part without any sign in it; most text has not.
_LONG_PART = re.compile(r"[\w-]{16}")
_SERVICES = (
    _rule("akia asia abia acca agpa aida aroa", r"A(?:KIA|SIA|BIA|CCA|GPA|IDA|ROA)[A-Z0-9]{16}\b"),  # AWS
    _rule("ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}"),
    _rule("glpat- glptt- gldt- glrt- glsoat- glcbt-", r"gl(?:pat|ptt|dt|rt|soat|cbt)-[\w-]{20,}"),  # GitLab
    _rule("xox xapp-", r"xox[a-z](?:\.[a-z]+)?-[\w-]{10,}|xapp-\d-[\w-]{10,}"),  # Slack
    _rule("hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/+-]{20,}"),
    _rule(
        "sk- k_live_ k_test_ k_prod_", r"sk-[\w-]{20,}|[rsp]k_(?:live|test|prod)_\w{10,}"
    ),  # Stripe, models
    _rule("aiza ya29. gocspx- 1//", r"(?:AIza|ya29\.|GOCSPX-|1//)[\w-]{20,}"),  # Google
    _rule("npm_ pypi- hf_ dapi lin_api_ ntn_", r"(?:npm_|pypi-|hf_|dapi|lin_api_|ntn_)[\w-]{20,}"),
    _rule("_v1_ shp whsec_ gsk_", r"(?:do[opr]_v1_|shp(?:at|ca|pa|ss)_|whsec_|gsk_)[\w-]{16,}"),
    _rule("sg. hvs. hvb. hvr.", r"SG\.[\w-]{16,}\.[\w-]{16,}|hv[sbr]\.[\w-]{20,}"),  # SendGrid, Vault
    _rule("age-secret-key-", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _rule(":", r"\d{8,10}:[\w-]{35}\b"),  # Telegram
)
_SPELLED_OUT = (
    _rule("eyj", r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}"),  # JSON Web Tokens
    _rule("private key", r"-----BEGIN[ A-Z0-9]{0,40} PRIVATE KEY[\s\S]*?(?:-----END[ A-Z0-9]{0,60}-----|\Z)"),
    _rule(
        "bearer basic digest negotiate token", r"(?i:bearer|basic|digest|negotiate|token)\s+[\w.~+/=-]{12,}"
    ),
    _rule("sig= pwd=", r"(?i:sig|pwd)=[^;&\s\"']{6,}"),
    _rule(
        "passw secret token key credential",
        r"[\w-]{0,40}(?i:passw(?:or)?d|secret|token|(?:api|access|account)[_-]?key|credentials?)"
        r"[\"']?\s*[=:]\s*[\"']?[^\s,;&\"']{4,}",
    ),
    _rule("@", r"(?<=://)[^/?#\s@:]*:[^/?#\s@]*@"),  # user information of a URL
)
# A run of characters that could be random; whether it is, its entropy says.
_RUN = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}")
_HEX = re.compile(r"[0-9a-fA-F-]+")
_KINDS = (re.compile("[0-9]"), re.compile("[A-Z]"), re.compile("[a-z]"))


def redact_text(text: str) -> tuple[str, int]:
    """The text without what looks like a secret, and how many there were."""
    if len(text) < 8:
        return text, 0
    lower = text.lower()
    total = 0
    for rules in (_SERVICES, _SPELLED_OUT) if _LONG_PART.search(text) else (_SPELLED_OUT,):
        for hints, pattern in rules:
            for hint in hints:
                if hint in lower:
                    text, found = re.subn(pattern, REDACTED, text)
                    total += found
                    break
    random = sum(map(_is_random, _RUN.findall(text)))
    if random:
        text = _RUN.sub(lambda run: REDACTED if _is_random(run[0]) else run[0], text)
    return text, total + random


def _is_random(run: str) -> bool:
    """Random text of 24 characters has more than 3.8 bits in each; words, paths and names have not.

    Of sixteen digits none can have more than four bits: keys in hexadecimal are known by their length.
    """
    if _HEX.fullmatch(run):
        return len(run.replace("-", "")) >= 32 and _entropy(run) > 2.8
    return all(kind.search(run) for kind in _KINDS) and _entropy(run) > 3.8


def _entropy(text: str) -> float:
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


_USERINFO = re.compile(r"(?<=://)[^/?#]*@")
_PARAMETER = re.compile(r"[^?&#;]+")


def redact_uri(uri: str) -> tuple[str, int]:
    """A URI without user information, without the values of its query, and without secrets elsewhere."""
    start = min((place for place in (uri.find("?"), uri.find("#")) if place >= 0), default=len(uri))
    head, users = _USERINFO.subn(f"{REDACTED}@", uri[:start])
    head, found = redact_text(head)
    if start == len(uri):
        return head, users + found
    rest, values = _PARAMETER.subn(_redact_parameter, uri[start:])
    return head + rest, users + found + values


def _redact_parameter(piece: re.Match[str]) -> str:
    name, given, _ = piece[0].partition("=")
    return redact_text(name)[0] + (f"={REDACTED}" if given else "")


# ---- whole values


def redact(value: object, secret: Collection[str] = ()) -> tuple[object, int]:
    """The same value without its secrets, and how many there were. `secret` are names of parameters."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, list):
        pairs = [redact(each, secret) for each in value]
        return [each for each, _ in pairs], sum(count for _, count in pairs)
    if isinstance(value, dict):
        return _redact_object(value, secret)
    return value, 0


def _redact_object(value: dict[str, object], secret: Collection[str]) -> tuple[dict[str, object], int]:
    result: dict[str, object] = {}
    total = 0
    for name, each in value.items():
        shown, found = redact_text(name)
        if name in secret or is_secret_name(name):
            result[shown], count = REDACTED, 1
        else:
            result[shown], count = redact(each, secret)
        total += found + count
    return result, total
