"""A tool's schema as the APIs of models take it: one that they refuse fails the whole request.

MCP allows more than they do. OpenAI answers "object schema missing properties" and "array schema
missing items"; Anthropic "input_schema does not support oneOf, allOf, or anyOf at the top level", and
reads everything as JSON Schema 2020-12. What is changed here is only what they would refuse, and only
for the model's eyes: the server still checks arguments against the schema it wrote.
"""

from collections.abc import Callable, Mapping, Sequence

Schema = dict[str, object]

DEEPEST = 32
"""Levels that are looked at; what lies deeper is left as it is."""
MOST_BRANCHES = 200
"""Of the choices at the root, and of the choices in them."""
_REFUSED_AT_THE_ROOT = ("$schema", "$ref", "enum", "const", "not", "if", "then", "else")
_ONE = ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames")
_SEVERAL = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def acceptable(schema: Mapping[str, object]) -> Schema:
    """The schema of an object, with its parts where every API looks for them."""
    root = _Flattening(schema).flat(schema)
    properties = root.get("properties")
    root |= {"type": "object", "properties": properties if isinstance(properties, Mapping) else {}}
    if not isinstance(root.get("required", []), list):
        del root["required"]
    for keyword in _REFUSED_AT_THE_ROOT:
        root.pop(keyword, None)
    return _mended(root, 0)


# ---- the root: one object, not a choice of objects or a reference to one


class _Flattening:
    """Of one schema. References can make a short schema endless, or larger than any memory: so many
    branches are looked at, and no more."""

    def __init__(self, root: Mapping[str, object]) -> None:
        self._root = root
        self._left = MOST_BRANCHES

    def flat(self, schema: Mapping[str, object]) -> Schema:
        flat = self._followed(schema)
        for keyword in ("allOf", "anyOf", "oneOf"):
            branches = flat.pop(keyword, None)
            if isinstance(branches, list):
                _fold(flat, keyword, self._each(branches))
        return flat

    def _each(self, branches: list[object]) -> list[Schema]:
        parts = []
        for branch in branches:
            if isinstance(branch, Mapping) and self._left > 0:
                self._left -= 1
                parts.append(self.flat(branch))
        return parts

    def _followed(self, schema: Mapping[str, object]) -> Schema:
        """A `$ref` within the root, `{"$ref": "#/$defs/Arguments"}`, replaced by what it refers to."""
        followed = dict(schema)
        for _ in range(DEEPEST):
            target = _target(followed.pop("$ref", None), self._root)
            if target is None:
                break
            followed = {**target, **followed}
        return followed


def _target(reference: object, root: Mapping[str, object]) -> Mapping[str, object] | None:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: object = root
    for step in reference[2:].split("/"):
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _fold(flat: Schema, keyword: str, parts: Sequence[Schema]) -> None:
    """Put the properties of every branch into the object itself.

    A property that branches describe differently may be any of them. What every branch requires is
    required; of the rest the model is told in words.
    """
    own = _mapping(flat.get("properties"))
    found: dict[str, list[object]] = {}
    for part in parts:
        for name, described in _mapping(part.get("properties")).items():
            if described not in (each := found.setdefault(name, [])):
                each.append(described)
    merged = {name: each[0] if len(each) == 1 else {keyword: each} for name, each in found.items()}
    flat["properties"] = {**merged, **own}
    needed = [_names(part.get("required")) for part in parts]
    mine = _names(flat.get("required"))
    if keyword == "allOf":
        common = [name for names in needed for name in names]
    else:
        common = [name for name in (needed[0] if needed else []) if all(name in names for names in needed)]
        _explain(flat, [[name for name in names if name not in (*common, *mine)] for names in needed])
    if required := list(dict.fromkeys([*mine, *common])):
        flat["required"] = required


def _explain(flat: Schema, choices: Sequence[Sequence[str]]) -> None:
    if any(choices):
        said = " or ".join(dict.fromkeys(" with ".join(names) or "none of these" for names in choices))
        flat["description"] = f"{flat.get('description') or ''} Needed as well: {said}.".strip()


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _names(value: object) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


# ---- every level: what an array holds, what an object has


def _mended(schema: Mapping[str, object], depth: int) -> Schema:
    mended = dict(schema)
    if depth > DEEPEST:
        return mended
    if isinstance(mended.get("items"), list):
        # A tuple, as it was written before 2020-12.
        mended["prefixItems"] = mended.pop("items")
    if _is(mended, "array"):
        mended.setdefault("items", {})
    if _is(mended, "object"):
        mended.setdefault("properties", {})
    for keyword in _ONE:
        _replace(mended, keyword, lambda inner: _inner(inner, depth))
    for keyword in _SEVERAL:
        _replace(mended, keyword, lambda inner: _each(inner, depth))
    for keyword in _NAMED:
        _replace(mended, keyword, lambda inner: _each_named(inner, depth))
    return mended


def _is(schema: Schema, kind: str) -> bool:
    named = schema.get("type")
    return named == kind or (isinstance(named, list) and kind in named)


def _replace(schema: Schema, keyword: str, mend: Callable[[object], object]) -> None:
    if keyword in schema:
        schema[keyword] = mend(schema[keyword])


def _inner(value: object, depth: int) -> object:
    return _mended(value, depth + 1) if isinstance(value, Mapping) else value


def _each(value: object, depth: int) -> object:
    return [_inner(each, depth) for each in value] if isinstance(value, list) else value


def _each_named(value: object, depth: int) -> object:
    if not isinstance(value, Mapping):
        return value
    return {name: _inner(each, depth) for name, each in value.items()}
