"""The settings that our own `plait` keys take, and how each is read."""

from __future__ import annotations

from msgspec.structs import replace

from plait.config import fields, guards, http
from plait.config.access import HttpSettings
from plait.config.delegating import delegation
from plait.config.expand import Variables
from plait.config.layering import Changes, changed
from plait.config.model import (
    AuditSettings,
    PolicySettings,
    ResultSettings,
    ServerSettings,
    Settings,
    StreamSettings,
)
from plait.config.reading import Expanding, Option, read_option, read_options, section
from plait.config.spot import Findings, Spot, close_match

_STREAM_OPTIONS = (
    Option("items", ("items",), fields.whole(1)),
    Option("bytes", ("bytes",), fields.whole(1)),
    Option("seconds", ("seconds",), fields.seconds()),
)

LIMIT_OPTIONS = (
    Option("timeout", ("timeout",), fields.seconds()),
    Option("start_timeout", ("startTimeout", "start_timeout"), fields.seconds()),
    Option("concurrency", ("concurrency",), fields.whole(1)),
    Option("queue", ("queue",), fields.whole(0)),
    Option("max_message_bytes", ("maxMessageBytes", "max_message_bytes"), fields.whole(1)),
    Option("memory", ("memory",), fields.whole(1)),
    Option("processes", ("processes",), fields.whole(1)),
    Option("stream", ("stream",), section(StreamSettings, _STREAM_OPTIONS)),
)

SERVER_OPTIONS = (
    *LIMIT_OPTIONS,
    Option("prefix", ("prefix",), fields.prefix),
    Option("env", ("env",), fields.variable_names),
    Option("share", ("share",), fields.one_of(("identity", "all", "call"))),
    Option("start", ("start",), fields.one_of(("eager", "lazy"))),
    Option("idle", ("idle",), fields.seconds()),
    Option("sanitise", ("sanitise", "sanitize"), fields.truth),
    Option("era", ("era",), fields.one_of(("auto", "handshake", "modern"))),
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
    Option("builtin", ("builtin",), fields.truth),
    Option("resource_tools", ("resourceTools", "resource_tools"), fields.truth),
    Option("meta_resources", ("metaResources", "meta_resources"), fields.truth),
    Option("admin_tools", ("adminTools", "admin_tools"), fields.truth, guards=True),
    Option("operators", ("operators",), fields.texts, guards=True),
    Option("workspace", ("workspace",), Expanding(fields.folder)),
    Option("rules", ("rules",), Expanding(guards.rules), guards=True),
    Option("allowed_tools", ("allowedTools", "allowed_tools"), fields.texts, guards=True),
    Option("policy", ("policy",), section(PolicySettings, guards.POLICY_OPTIONS), guards=True),
    Option("results", ("results",), section(ResultSettings, guards.RESULT_OPTIONS)),
    Option("audit", ("audit",), section(AuditSettings, guards.AUDIT_OPTIONS), guards=True),
    Option("listen", ("listen",), http.listen, guards=True),
    Option("http", ("http",), section(HttpSettings, http.HTTP_OPTIONS), guards=True),
    Option("limits", ("limits",), section(ServerSettings, LIMIT_OPTIONS)),
    Option("delegation", ("delegation",), Expanding(delegation)),
)

# What the seeds' files have under `tools` beside servers.
_SEED_TOOL_OPTIONS = (Option("allowed_tools", ("allowed_tools", "allowedTools"), fields.texts, guards=True),)

# The keys under which other programs' files say which tools are to be seen.
_SHOWN_TOOLS = ("includeTools", "enabled_tools", "enabledTools")
_HIDDEN_TOOLS = ("excludeTools", "disabledTools", "disabled_tools")


def read_settings(root: Spot, settings: Settings, findings: Findings, variables: Variables) -> Settings:
    """The settings with what this file says on top."""
    spot = root.member("plait")
    values = read_options(spot, OPTIONS, findings, variables) if spot else {}
    return changed(changed(settings, _seed_values(root, findings, variables)), values)


def _seed_values(root: Spot, findings: Findings, variables: Variables) -> dict[str, object]:
    """What the seeds' own keys say; ours go on top of them."""
    values = _shared(root.member("tools"), _SEED_TOOL_OPTIONS, findings, variables)
    policy = _shared(root.member("security"), guards.SEED_POLICY_OPTIONS, findings, variables)
    handing_on = root.member("delegation")
    if handing_on is not None:
        values["delegation"] = delegation(handing_on, findings, variables)
    return {**values, "policy": Changes(PolicySettings, policy)}


def _shared(
    spot: Spot | None, options: tuple[Option, ...], findings: Findings, variables: Variables
) -> dict[str, object]:
    """What is set in an object in which other programs have keys too: only near misses are told."""
    values: dict[str, object] = {}
    by_spelling = {spelling: option for option in options for spelling in option.spellings}
    for key, member in spot.members() if spot is not None else ():
        option = by_spelling.get(key)
        if option is not None:
            values[option.field] = read_option(option, member, findings, variables)
        elif close_match(key, by_spelling):
            findings.unknown_field(key, member, by_spelling, "warning")
    return {field: value for field, value in values.items() if value is not None}


def read_server_settings(
    entry: Spot, limits: ServerSettings, variables: Variables, findings: Findings
) -> ServerSettings:
    """What an entry says about its server, to us or in the words of another program."""
    values: dict[str, object] = {}
    shown = _tool_list(entry, *_SHOWN_TOOLS)
    if shown is not None:
        values["tools"] = fields.texts(shown, findings)
    spot = entry.member("plait")
    ours = read_options(spot, SERVER_OPTIONS, findings, variables) if spot else {}
    settings = changed(limits, {**values, **ours})
    hidden = entry.member(*_HIDDEN_TOOLS)
    also = fields.texts(hidden, findings) if hidden is not None else ()
    return replace(settings, hidden_tools=tuple(dict.fromkeys((*settings.hidden_tools, *(also or ())))))


def _tool_list(entry: Spot, *keys: str) -> Spot | None:
    """Which tools another program shows; some files have other things under `tools` than a list."""
    tools = entry.member("tools")
    if tools is not None and isinstance(tools.node.value, tuple):
        return tools
    return entry.member(*keys)
