import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plait.pipeline.sanitising import MANY, count_unseen, harmless, neutralise, without_unseen

FORBIDDEN = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), *range(0xE0000, 0xE0080))} - set(
    "\t\n\r"
)
PIECES = st.sampled_from(
    [
        "\x1b",
        "[",
        "]",
        "31m",
        "8;;",
        "\\",
        "\x07",
        "\x9b",
        "\x9d",
        "\x9c",
        "P",
        "\n",
        "\ufe0f",
        "\u200d",
        "❤",
        "ب",
    ]
)
TEXTS = st.text(max_size=40) | st.lists(PIECES | st.characters(codec="utf-8"), max_size=30).map("".join)


@pytest.mark.requirement("S1-047", "BC-38", "X-18")
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\x00b\x08c\x7fd", "abcd"),
        ("tab\tnewline\nreturn\r", "tab\tnewline\nreturn\r"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[?25lhidden cursor", "hidden cursor"),
        ("\x9b2Jcleared by one character", "cleared by one character"),
        ("\x1b]8;;https://evil.example\x1b\\a link\x1b]8;;\x1b\\", "a link"),
        ("\x1b]8;;https://evil.example\x07a link\x1b]8;;\x07", "a link"),
        ("\x1b]52;c;cm0gLXJm\x07clipboard", "clipboard"),
        ("\x9d0;title\x9cby C1", "by C1"),
        ("\x1bPq#0;2;0;0;0\x1b\\sixel", "sixel"),
        ("\x1b(Bcharset\x1bc", "charset"),
        ("ends in the middle\x1b[31", "ends in the middle"),
        ("ends at once\x1b", "ends at once"),
        ("never ended: \x1b]52;c;aGk=", "never ended: 52;c;aGk="),
        ("no newline is swallowed \x1b]0;x\nnext", "no newline is swallowed 0;x\nnext"),
        ("nested \x1b\x1b[31m[31m", "nested [31m"),
        ("tags \U000e0049\U000e0067n", "tags n"),
        ("emoji 👩‍👩‍👧, 你好, שלום, می‌خواهم", "emoji 👩‍👩‍👧, 你好, שלום, می‌خواهم"),
    ],
)
def test_what_speaks_to_terminals_goes_and_what_people_read_stays(text: str, left: str) -> None:
    assert neutralise(text) == left


@given(TEXTS)
def test_neutralised_text_holds_nothing_forbidden_and_stays_as_it_is(text: str) -> None:
    clean = neutralise(text)
    assert not FORBIDDEN & set(clean)
    assert neutralise(clean) == clean
    if not FORBIDDEN & set(text):
        assert clean == text


@settings(deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join), st.integers(0, 30))
def test_a_sequence_across_the_edge_of_a_step_is_found_like_any_other(middle: str, offset: int) -> None:
    front, back = "x" * (65_536 - offset), "y" * 40
    assert neutralise(front + middle + "\n" + back) == front + neutralise(middle + "\n") + back


@settings(deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join), st.integers(0, 20))
def test_invisible_characters_across_the_edge_of_a_step_are_counted_like_any_other(
    middle: str, offset: int
) -> None:
    assert count_unseen("x" * (65_536 - offset) + middle) == count_unseen("x" + middle)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("plain", 0),
        ("❤️‍🔥 👩‍👩‍👧 1️⃣ 🏳️‍🌈", 0),
        ("می‌خواهم", 0),
        ("zero\u200bwidth", 1),
        ("\u202eright to left", 1),
        ("a\u200db", 1),
        ("é\ufe0f\ufe0f\ufe0f", 2),
        ("\ufeffmark", 1),
        ("x\U000e0100\U000e0101", 2),
    ],
)
def test_invisible_characters_count_where_they_join_or_shape_nothing(text: str, count: int) -> None:
    assert count_unseen(text) == count
    assert count_unseen(without_unseen(text)) == 0


def test_ten_thousand_invisible_characters_are_many_enough() -> None:
    assert count_unseen("a" + "\u200b" * (MANY + 5)) == MANY


def test_stripping_leaves_what_emoji_and_persian_need() -> None:
    assert without_unseen("a\u200bb ❤️‍🔥 می‌خواهم\u2060") == "ab ❤️‍🔥 می‌خواهم"


@given(TEXTS, st.booleans(), st.booleans())
@example("\x7f", False, False)
@example("\x85", True, True)
@example("\U000e0041", True, True)
@example("\u200b", True, True)
@example("\b", True, False)
def test_a_payload_that_passes_as_harmless_has_nothing_to_take_out_or_count(
    text: str, escape: bool, shout: bool
) -> None:
    payload = json.dumps({"text": text}, ensure_ascii=escape)
    if shout:
        payload = _upper_case_escapes(payload)
    if harmless(payload.encode()):
        assert neutralise(text) == text
        assert count_unseen(text) == 0


@given(st.characters(exclude_categories=["Cs"]))
def test_every_single_character_is_judged_alike_in_both_spellings(character: str) -> None:
    """Whatever a regular expression on bytes says is what the one on text says."""
    plain = neutralise(character) == character and count_unseen(character) == 0
    # Escaped, a character beyond the first 65,536 is two halves, and the first alone raises the alarm.
    for escape in (False, True) if ord(character) < 0x10000 else (False,):
        assert harmless(json.dumps(character, ensure_ascii=escape).encode()) is plain


def test_all_characters_that_matter_are_caught_in_both_spellings() -> None:
    matter = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    matter = [c for c in matter if neutralise(c) != c or count_unseen(c)]
    assert len(matter) > 4_000
    for character in matter:
        assert not harmless(json.dumps(character, ensure_ascii=False).encode()), ascii(character)
        assert not harmless(json.dumps(character).encode()), ascii(character)
        assert not harmless(_upper_case_escapes(json.dumps(character)).encode()), ascii(character)


def _upper_case_escapes(payload: str) -> str:
    head, *tail = payload.split("\\u")
    return head + "".join("\\u" + part[:4].upper() + part[4:] for part in tail)
