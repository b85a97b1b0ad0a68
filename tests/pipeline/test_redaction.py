"""What is secret is taken out, however it is spelled; what is not stays."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.pipeline.redaction import (
    REDACTED,
    is_secret_name,
    redact,
    redact_text,
    redact_uri,
    secret_parameters,
)

# Made of two parts, so that nobody's scanner takes this file for a leak.
TOKENS = {
    "aws": "AKIA" + "IOSFODNN7EXAMPLE",
    "aws session": "ASIA" + "Y34FZKBOKMUTVV7A",
    "github": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "github server": "ghs_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "github fine-grained": "github_pat_" + "11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789",
    "gitlab": "glpat-" + "x9Yz-AbCdEfGhIjKlMnO",
    "slack bot": "xoxb-" + "123456789012-1234567890123-aBcDeFgHiJkLmNoPqRsTuVwX",
    "slack app": "xapp-" + "1-A0123456789-0123456789012-abcdef0123456789",
    "slack hook": "https://hooks.slack.com/services/" + "T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "jwt": "eyJhbGciOiJIUzI1NiJ9."
    + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "anthropic": "sk-ant-" + "api03-abcdefghijklmnopqrstuvwxyz0123456789",
    "openai": "sk-" + "proj-abcdefghijklmnopqrst0123456789",
    "stripe": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "google": "AIza" + "SyA-1234567890abcdefghijklmnopqrstu",
    "google oauth": "ya29." + "a0AfH6SMBx-abcdefghijklmnop",
    "npm": "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "pypi": "pypi-" + "AgEIcHlwaS5vcmcCJGFiY2RlZjAxLTIzNDU2Nzg5",
    "hugging face": "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "sendgrid": "SG." + "aBcDeFgHiJkLmNoPqRsTuV.WxYz0123456789aBcDeFgHiJkLmNoPqRsTuVwXyZ01234",
    "vault": "hvs." + "CAESIJlWh8dXhPqYbnVwzABCDEFGHIJKLMNOP",
    "telegram": "123456789" + ":AAF-abcdefghijklmnopqrstuvwxyz01234",
    "bearer": "Bearer " + "abcdef0123456789.abcdef",
    "basic": "Basic " + "dXNlcjpwYXNzd29yZDEyMw==",
    "url": "https://user:" + "hunter22@example.org/x",
    "assignment": "password=" + "hunter22",
    "quoted assignment": '"api_key": "' + 'hunter22hunter22"',
    "connection": "Server=x;AccountKey=" + "abcdefghijklmnopqrstuvwx==;",
    "random": "q7Zr9xKp2LmVt4Wn8YbC3dFg6HjT5sAe",
    "hexadecimal": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "private key": "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
    "cut private key": "-----BEGIN PRIVATE" + " KEY-----\nMIIEpAIBAAKCAQEA",
}


@pytest.mark.parametrize("kind", TOKENS)
@pytest.mark.parametrize("around", ["{}", "use {} now", "x={}", '{{"a": "{}"}}', "({})", "line\n{}\nline"])
def test_what_looks_like_a_secret_is_taken_out_wherever_it_stands(kind: str, around: str) -> None:
    token = TOKENS[kind]
    text, count = redact_text(around.format(token))
    assert count >= 1
    assert REDACTED in text
    for part in re.findall(r"[\w+/-]{12,}", token.partition("://")[2] or token):
        if part not in ("hooks.slack.com/services", "example"):
            assert part not in text


@pytest.mark.parametrize(
    "text",
    [
        "/home/user/projects/gateway/src/plait/pipeline/redaction.py",
        "a perfectly ordinary sentence about tokens and keys",
        "https://example.org/docs/reference/configuration.html",
        "SELECT name, count(*) FROM customers WHERE created_at > '2026-01-01' GROUP BY name",
        "filesystem__read_multiple_files",
        "com.example.very.long.package.name.ClassName",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "max_tokens: 12",
        "short",
        "",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact_text(text) == (text, 0)


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "passwd",
        "db_password",
        "userPassword",
        "PASSWORD",
        "api_key",
        "apiKey",
        "APIKey",
        "x-api-key",
        "authorization",
        "X-Auth-Token",
        "access_token",
        "accessToken",
        "refreshToken",
        "token",
        "secret",
        "client_secret",
        "clientSecret",
        "SECRET_KEY",
        "aws_secret_access_key",
        "privateKey",
        "private-key",
        "passphrase",
        "cookie",
        "Set-Cookie",
        "session_id",
        "credentials",
        "jwt",
        "otp",
        "pin",
        "connectionString",
        "AWS_SESSION_TOKEN",
        "githubToken",
        "dbPass",
    ],
)
def test_a_secrets_name_is_known_in_every_spelling(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "path",
        "max_tokens",
        "maxTokens",
        "token_count",
        "tokenLimit",
        "author",
        "authority",
        "key",
        "keyword",
        "monkey",
        "compass",
        "passenger",
        "pinned",
        "spin",
        "secretary",
        "query",
        "content",
        "name",
        "id",
        "url",
        "token_type",
        "passive",
        "bypass",
        "tokenizer",
    ],
)
def test_names_that_only_sound_like_it_are_none(name: str) -> None:
    assert not is_secret_name(name)


def test_what_a_schema_calls_secret_is_secret_at_any_depth() -> None:
    schema = {
        "type": "object",
        "properties": {
            "door": {"type": "string", "format": "password"},
            "window": {"type": "string", "writeOnly": True},
            "roof": {"type": "object", "properties": {"hatch": {"x-secret": True}}},
            "wall": {"type": "string"},
            "odd": True,
        },
        "anyOf": [{"properties": {"cellar": {"format": "secret"}}}],
    }
    assert secret_parameters(schema) == {"door", "window", "hatch", "cellar"}
    assert secret_parameters(None) == frozenset()
    assert secret_parameters([1, "x"]) == frozenset()


def test_a_whole_value_is_gone_through() -> None:
    value = {
        "path": "/tmp/x",
        "password": {"even": "objects"},
        "door": 1234,
        "list": [{"apiKey": "k"}, "use " + TOKENS["github"], 7, None, True, 1.5],
        TOKENS["aws"]: "as a key",
    }
    redacted, count = redact(value, {"door"})
    assert redacted == {
        "path": "/tmp/x",
        "password": REDACTED,
        "door": REDACTED,
        "list": [{"apiKey": REDACTED}, f"use {REDACTED}", 7, None, True, 1.5],
        REDACTED: "as a key",
    }
    assert count == 5


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("file:///home/user/notes.txt", "file:///home/user/notes.txt"),
        ("https://u:p@example.org/a", f"https://{REDACTED}@example.org/a"),
        ("https://user@example.org/a", f"https://{REDACTED}@example.org/a"),
        ("https://x.org/a?q=1&token=abc#f", f"https://x.org/a?q={REDACTED}&token={REDACTED}#f"),
        ("https://x.org/cb#access_token=abc", f"https://x.org/cb#access_token={REDACTED}"),
        ("https://x.org/a#" + TOKENS["github"], f"https://x.org/a#{REDACTED}"),
        ("test://static/resource/1", "test://static/resource/1"),
    ],
)
def test_a_uri_keeps_its_place_and_loses_its_values(uri: str, expected: str) -> None:
    assert redact_uri(uri)[0] == expected


alphabet = st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")


@settings(deadline=None)
@given(
    st.sampled_from(["ghp_", "sk-ant-api03-", "xoxb-", "glpat-", "npm_"]),
    st.text(alphabet, min_size=40, max_size=60),
)
def test_no_token_of_a_known_kind_survives(prefix: str, body: str) -> None:
    text, _ = redact_text(f"before {prefix}{body} after")
    assert text == f"before {REDACTED} after"


@settings(deadline=None)
@given(st.text())
def test_any_text_comes_back_as_text(text: str) -> None:
    redact_text(text)
    redact_uri(text)
    is_secret_name(text)


@pytest.mark.parametrize(
    "piece",
    ["eyJ-", "a-", "://:", "password ", "-----BEGIN ", "Bearer ", "token=", "x_", "A1b", "sk-", "=", "1//"],
)
@pytest.mark.timeout(60)
def test_hostile_text_takes_time_by_its_length_only(piece: str) -> None:
    """Milliseconds as it is; by the square of its length it would be minutes."""
    text = piece * (200_000 // len(piece))
    redact_text(text)
    redact_uri(text)
