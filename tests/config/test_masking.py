"""Secrets are hidden; what helps to find a mistake is not."""

import pytest

from plait.config.masking import mask_broken_line, mask_url, mask_values, printable, quoted, secret_spans


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.example/mcp", "https://api.example/mcp"),
        ("https://ada:hush@api.example/mcp", "https://***@api.example/mcp"),
        ("https://api.example/mcp?key=hush&x=1#hush", "https://api.example/mcp?***"),
        ("https://api.example/mcp#hush", "https://api.example/mcp#***"),
        ("https://ada:hu@sh@api.example/a@b", "https://***@api.example/a@b"),
    ],
)
def test_a_url_shows_where_it_leads_and_no_key(url: str, expected: str) -> None:
    assert mask_url(url) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hush", "***"),
        ("Bearer ${TOKEN}", "Bearer ${TOKEN}"),
        ("Bearer hush", "Bearer ***"),
        ("hush${TOKEN}hush", "***${TOKEN}***"),
        ("${TOKEN:-hush}", "${TOKEN:-***}"),
        ("${A:-hush${env:B}}", "${A:-***${env:B}}"),
        ("${hush", "***"),
        ("$${hush hush}", "***}"),
        ("${A/hush} ${A:hush}", "***}***}"),
    ],
)
def test_of_a_secret_value_only_its_placeholders_are_shown(value: str, expected: str) -> None:
    shown, position = "", 0
    for start, end in secret_spans(value, 0, len(value)):
        shown += value[position:start] + "***"
        position = end
    assert shown + value[position:] == expected


def test_values_are_hidden_and_names_are_not() -> None:
    assert mask_values({"TOKEN": "hush"}) == {"TOKEN": "***"}


def test_a_line_of_a_broken_file_keeps_keys_and_punctuation() -> None:
    assert mask_broken_line('"a": ["hush", {"b-c" : hush}] // hush') == '"a": [***, {"b-c" : ***}] *** ***'
    assert mask_broken_line('"a": "hush": "b": 1') == '"a": ***: ***: ***'


def test_a_name_cannot_move_the_cursor_or_fill_the_screen() -> None:
    assert quoted("a\x1b[2J") == r"'a\x1b[2J'"
    assert len(quoted("a" * 10_000)) < 100
    assert printable("a\x1b\u202eb") == "a  b"
