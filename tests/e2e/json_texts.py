"""Any JSON text: not only what an encoder would write, but whatever the grammar allows on one line."""

import json

from hypothesis import strategies as st

_SPACE = st.sampled_from(["", "", " ", "\t", "\r"])
_FLOATS = st.floats(allow_nan=False, allow_infinity=False)
_ODD_NUMBERS = ["-0", "-0.0", "1.0", "1.10", "1E5", "1e+05", "1e-400", "1e400", "0.1" + "0" * 40, "9" * 40]
_NUMBERS = st.sampled_from(_ODD_NUMBERS) | st.integers().map(str) | _FLOATS.map(repr)
_ESCAPES = [r"\"", r"\\", r"\/", r"\b", r"\n", r"\u0000", r"\u00E9", r"\ud83d\uDE00", r"\u2028", r"\\ud83d"]
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_STRINGS = (
    _TEXTS.map(json.dumps)
    | _TEXTS.map(lambda text: json.dumps(text, ensure_ascii=False))
    | st.tuples(st.sampled_from(_ESCAPES), st.sampled_from(_ESCAPES)).map(lambda pair: f'"{"é".join(pair)}"')
)
_SCALARS = st.sampled_from(["null", "true", "false"]) | _NUMBERS | _STRINGS


def _array(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(_SPACE, st.lists(items, max_size=3)).map(
        lambda made: f"[{made[0]}{(made[0] + ',').join(made[1])}]"
    )


def _object(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    # Equal keys may come twice: nobody in between decides which of them counts.
    pairs = st.tuples(_STRINGS, _SPACE, items).map(lambda pair: f"{pair[0]}{pair[1]}:{pair[2]}{pair[1]}")
    return st.lists(pairs, max_size=3).map(lambda parts: f"{{{','.join(parts)}}}")


_ANY = st.recursive(_SCALARS, lambda items: _array(items) | _object(items), max_leaves=8)

values = _ANY.map(str.encode)
"""The text of any value."""

objects = _object(_ANY).map(str.encode)
"""The text of any object."""
