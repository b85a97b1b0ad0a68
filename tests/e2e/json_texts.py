"""Any JSON text: not only what an encoder would write, but whatever the grammar allows on one line."""

from hypothesis import strategies as st

_SPACE = st.sampled_from(["", "", "", " ", "\t", "\r", "  \r\t"])
_NUMBERS = st.from_regex(r"-?(0|[1-9][0-9]{0,40})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
_ESCAPES = st.sampled_from(
    [r"\"", r"\\", r"\/", r"\b", r"\n", r"\u0000", r"\u00E9", r"\ud83d\uDE00", r"\u2028"]
)
# No control characters, quotes, backslashes or surrogates: they only stand in JSON as escapes.
_PLAIN = st.characters(min_codepoint=0x20, blacklist_categories=["Cs"], blacklist_characters='"\\')
_STRINGS = st.lists(_PLAIN | _ESCAPES, max_size=12).map(lambda parts: f'"{"".join(parts)}"')
_SCALARS = st.sampled_from(["null", "true", "false"]) | _NUMBERS | _STRINGS


def _spaced(text: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(_SPACE, text, _SPACE).map("".join)


def _array(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(_spaced(items), max_size=5).map(lambda parts: f"[{','.join(parts)}]")


def _object(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # Equal keys may come twice: nobody in between decides which of them counts.
    pairs = st.tuples(_spaced(_STRINGS), _spaced(items)).map(":".join)
    return st.lists(pairs, max_size=5).map(lambda parts: f"{{{','.join(parts)}}}")


values = st.recursive(_SCALARS, lambda items: _array(items) | _object(items), max_leaves=20).map(str.encode)
"""The text of any value."""

objects = _object(st.recursive(_SCALARS, lambda items: _array(items) | _object(items), max_leaves=20)).map(
    str.encode
)
"""The text of any object."""
