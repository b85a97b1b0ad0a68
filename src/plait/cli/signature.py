"""A tool's input schema as people write it: `read_file(path: string, head?: number)`."""

from collections.abc import Mapping

import msgspec


def signature(name: str, schema: object) -> str:
    properties, required = _properties(schema)
    parts = [f"{key}{'' if key in required else '?'}: {_type(value)}" for key, value in properties.items()]
    return f"{name}({', '.join(parts)})"


def _properties(schema: object) -> tuple[Mapping[str, object], set[str]]:
    if not isinstance(schema, Mapping):
        return {}, set()
    properties, required = schema.get("properties"), schema.get("required")
    return (
        properties if isinstance(properties, Mapping) else {},
        {key for key in required if isinstance(key, str)} if isinstance(required, list) else set(),
    )


def _type(value: object) -> str:
    if not isinstance(value, Mapping):
        return "any"
    options = value.get("enum")
    if isinstance(options, list) and len(options) <= 4:
        return " | ".join(msgspec.json.encode(option).decode() for option in options)
    choices = value.get("anyOf")
    if isinstance(choices, list):
        kinds = [_type(choice) for choice in choices]
        return " | ".join(kind for kind in kinds if kind != "null") or "null"
    kind = value.get("type", "any")
    return " | ".join(str(each) for each in kind) if isinstance(kind, list) else str(kind)


def read_pair(pair: str, schema: object) -> tuple[str, object]:
    """`key=value` as an argument: by the type the schema says, else as JSON if it is any, else as text."""
    key, found, text = pair.partition("=")
    if not found or not key:
        raise ValueError(f"{pair!r} is not of the form KEY=VALUE")
    declared = _properties(schema)[0].get(key)
    if isinstance(declared, Mapping) and declared.get("type") == "string":
        return key, text
    try:
        return key, msgspec.json.decode(text)
    except msgspec.DecodeError:
        return key, text
