"""`x-mcp-header` in a tool's input schema: which arguments a call repeats in its headers.

"`x-mcp-header` [...] MUST be a non-empty RFC 9110 token, case-insensitively unique in the schema, only on
properties of type string, integer or boolean", and only where a chain of `properties` leads: what is
behind an array, a choice or a reference has no one place in the arguments.
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from plait.wire.headers import PARAMETER_PREFIX, Misheaded, read_value, write_value

ANNOTATION = "x-mcp-header"

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_INTEGER = re.compile(r"-?[0-9]{1,400}(\.0+)?").fullmatch
_TYPES = ("string", "integer", "boolean")
# Where a schema has schemas within it, apart from `properties`. Not `default`, `const`, `enum` or
# `examples`: what is in there is data, and may have any key.
_ONE = ("items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems")
_ONE_MORE = ("unevaluatedProperties", "not", "if", "then", "else", "contentSchema", "additionalItems")
_SEVERAL = ("allOf", "anyOf", "oneOf", "prefixItems", "items")
_NAMED = ("patternProperties", "dependentSchemas", "$defs", "definitions")

Path = tuple[str, ...]


class Mirrored(Struct, frozen=True):
    """One argument that is repeated in a header."""

    path: Path
    """From the arguments down, by the names of properties."""
    name: str
    """What follows `Mcp-Param-`."""
    type: str

    @property
    def header(self) -> str:
        return f"{PARAMETER_PREFIX}{self.name}"


class BadAnnotation(ValueError):
    """A schema has an `x-mcp-header` where or as none may be: clients must drop that tool."""


def mirrored(schema: object) -> list[Mirrored]:
    """What a call of this tool repeats. Raises BadAnnotation for a tool that HTTP clients must not use."""
    found: list[Mirrored] = []
    taken: set[str] = set()
    for path, inner in _positions(schema):
        if ANNOTATION not in inner:
            continue
        made = _read(path, inner)
        if made.name.lower() in taken:
            raise BadAnnotation(f"{ANNOTATION} {made.name!r} stands twice in the schema")
        taken.add(made.name.lower())
        found.append(made)
    return found


def _read(path: Path | None, schema: Mapping[str, object]) -> Mirrored:
    if not path:
        raise BadAnnotation(f"{ANNOTATION} where no chain of properties leads")
    name, type = schema[ANNOTATION], schema.get("type")
    where = ".".join(path)
    if not isinstance(name, str) or not _TOKEN(name):
        raise BadAnnotation(f"{ANNOTATION} of {where!r} cannot be the name of a header")
    if not isinstance(type, str) or type not in _TYPES:
        raise BadAnnotation(f"{ANNOTATION} of {where!r}, which is no string, integer or boolean")
    return Mirrored(path, name, type)


def _positions(root: object) -> Iterator[tuple[Path | None, Mapping[str, object]]]:
    """Every schema in a schema, with the way to it through `properties`; None where there is no such way."""
    todo: list[tuple[Path | None, object]] = [((), root)]
    while todo:
        path, schema = todo.pop()
        if not isinstance(schema, dict):
            continue
        yield path, schema
        properties = schema.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            todo.append((None if path is None else (*path, name), inner))
        todo += [(None, inner) for inner in _elsewhere(schema)]


def _elsewhere(schema: Mapping[str, object]) -> Iterator[object]:
    for keyword in (*_ONE, *_ONE_MORE):
        yield schema.get(keyword)
    for keyword in _SEVERAL:
        several = schema.get(keyword)
        yield from several if isinstance(several, list) else ()
    for keyword in _NAMED:
        named = schema.get(keyword)
        yield from named.values() if isinstance(named, dict) else ()


def parameter_headers(parameters: list[Mirrored], arguments: Mapping[str, object]) -> dict[str, str]:
    """The headers that a call with these arguments has; what is absent or null has none."""
    headers: dict[str, str] = {}
    for parameter in parameters:
        text = _written(_at(arguments, parameter.path))
        if text is not None:
            headers[parameter.header] = write_value(text)
    return headers


def check_parameters(
    parameters: list[Mirrored], arguments: Mapping[str, object], headers: Mapping[str, str]
) -> None:
    """Raise Misheaded unless the `Mcp-Param-*` headers (as `gather` gives them) repeat the arguments.

    Headers of that kind that the schema knows nothing of are nobody's to compare, and pass.
    """
    for parameter in parameters:
        written, said = headers.get(parameter.header.lower()), _written(_at(arguments, parameter.path))
        if written is None and said is None:
            continue
        if written is None:
            raise Misheaded(f"the header {parameter.header} is missing")
        if said is None:
            raise Misheaded(f"the header {parameter.header} has no value in the arguments")
        if not _equal(parameter.type, read_value(written), said):
            raise Misheaded(f"the header {parameter.header} does not say what the argument says")


def _equal(type: str, written: str, said: str) -> bool:
    """Integers are compared as numbers: `42.0` is 42."""
    if type == "integer" and _INTEGER(written) and _INTEGER(said):
        return _whole(written) == _whole(said)
    return written == said


def _whole(text: str) -> int:
    return int(text.partition(".")[0])


def _at(arguments: object, path: Path) -> object:
    for name in path:
        if not isinstance(arguments, dict):
            return None
        arguments = arguments.get(name)
    return arguments


def _written(value: object) -> str | None:
    """As a header says it; None where there is nothing that a header could say."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else str(value)
    if isinstance(value, int):
        # Python writes no integer of more than 4300 digits; no header holds one either.
        return str(value) if value.bit_length() < 1300 else None
    return value if isinstance(value, str) else None
