"""The settings that our own `plait` keys take, and how each is read."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from plait.config import fields
from plait.config.codes import TWO_SPELLINGS
from plait.config.masking import quoted
from plait.config.model import ServerSettings, Settings
from plait.config.spot import Findings, Spot


class Option(Struct, frozen=True):
    """One setting: the field it fills, how it may be spelled, and what it takes."""

    field: str
    spellings: tuple[str, ...]
    read: fields.Reader


SERVER_OPTIONS = (
    Option("prefix", ("prefix",), fields.prefix),
    Option("timeout", ("timeout",), fields.seconds()),
    Option("start_timeout", ("startTimeout", "start_timeout"), fields.seconds()),
    Option("env", ("env",), fields.variable_names),
    Option("max_message_bytes", ("maxMessageBytes", "max_message_bytes"), fields.whole(1)),
    Option("memory", ("memory",), fields.whole(1)),
    Option("processes", ("processes",), fields.whole(1)),
    Option("tools", ("tools",), fields.texts),
    Option("hidden_tools", ("hiddenTools", "hidden_tools"), fields.texts),
)

OPTIONS = (
    Option("separator", ("separator",), fields.one_of(("__", "_", "."))),
    Option("name_budget", ("nameBudget", "name_budget"), fields.whole(0)),
    Option("page_size", ("pageSize", "page_size"), fields.whole(1)),
    Option("max_message_bytes", ("maxMessageBytes", "max_message_bytes"), fields.whole(1)),
    Option("start_wait", ("startWait", "start_wait"), fields.seconds(zero=True)),
    Option("name", ("name",), fields.filled_text),
    Option("env", ("env",), fields.variable_names),
    Option("delegation", ("delegation",), fields.data),
)

# The keys under which other programs' files say which tools are to be seen.
_SHOWN_TOOLS = ("includeTools", "enabled_tools", "enabledTools")
_HIDDEN_TOOLS = ("excludeTools", "disabledTools", "disabled_tools")


def read_options(spot: Spot, options: tuple[Option, ...], findings: Findings) -> dict[str, object]:
    """What an object of ours sets; whatever cannot be read is reported and left out."""
    if not isinstance(spot.node.value, dict):
        findings.wrong_type(spot, "an object")
        return {}
    by_spelling = {spelling: option for option in options for spelling in option.spellings}
    known = [option.spellings[0] for option in options]
    values: dict[str, object] = {}
    for key, member in spot.members():
        option = by_spelling.get(key)
        if option is None:
            findings.unknown_field(key, member, known, "error")
        elif option.field in values:
            message = f"{quoted(key)} says again what {quoted(_other(option, key))} says"
            findings.report(TWO_SPELLINGS, member, message, offset=member.key_offset)
        else:
            values[option.field] = option.read(member, findings)
    return {field: value for field, value in values.items() if value is not None}


def _other(option: Option, key: str) -> str:
    return next(spelling for spelling in option.spellings if spelling != key)


def read_settings(root: Spot, settings: Settings, findings: Findings) -> tuple[Settings, object]:
    """The settings with what this file says on top, and its delegation if it has one."""
    spot = root.member("plait")
    values = read_options(spot, OPTIONS, findings) if spot else {}
    delegation = values.pop("delegation", None)
    outer = root.member("delegation")
    if outer is not None:
        delegation = fields.data(outer, findings)
    return replace(settings, **values), delegation


def read_server_settings(entry: Spot, findings: Findings) -> ServerSettings:
    """What an entry says about its server, to us or in the words of another program."""
    values: dict[str, object] = {}
    shown = _tool_list(entry, *_SHOWN_TOOLS)
    if shown is not None:
        values["tools"] = fields.texts(shown, findings)
    spot = entry.member("plait")
    ours = read_options(spot, SERVER_OPTIONS, findings) if spot else {}
    settings = replace(ServerSettings(), **{**values, **ours})
    hidden = entry.member(*_HIDDEN_TOOLS)
    also = fields.texts(hidden, findings) if hidden is not None else ()
    return replace(settings, hidden_tools=tuple(dict.fromkeys((*settings.hidden_tools, *(also or ())))))


def _tool_list(entry: Spot, *keys: str) -> Spot | None:
    """Which tools another program shows; some files have other things under `tools` than a list."""
    tools = entry.member("tools")
    if tools is not None and isinstance(tools.node.value, tuple):
        return tools
    return entry.member(*keys)
