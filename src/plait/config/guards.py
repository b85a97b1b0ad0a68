"""Read what guards calls: rules, policies, limits of results and the audit."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec.structs import replace

from plait.config import fields
from plait.config.codes import IMPOSSIBLE_VALUE
from plait.config.expand import Variables
from plait.config.layering import Joined
from plait.config.masking import quoted
from plait.config.model import CommandSettings, ParameterSetting, RuleSetting, UrlSettings
from plait.config.reading import Expanding, Option, read_options, section
from plait.config.spot import Findings, Spot

_MODES = ("allowlist", "denylist")
_HIGHEST_PORT = 65535
# Not what a mistake is likely to be: a URL, a port, a star in the middle. Whoever judges hosts reads
# closer. A string, compiled (and kept) by re at its first use: most files need none.
_DOMAIN = r"(?:\*\.)?(?:[^\s/\\*?#@%:\[\]]+|\[?[0-9A-Fa-f:.]+\]?)"
_parameter_kind = fields.one_of(("command", "url", "none"))


def rules(spot: Spot, findings: Findings, variables: Variables) -> Joined | None:
    """The rules of a file, in order; they go behind those of the files before."""
    if not isinstance(spot.node.value, tuple):
        findings.wrong_type(spot, "a list of rules")
        return None
    found = [_rule(item, findings, variables) for item in spot.items()]
    return Joined(tuple(rule for rule in found if rule is not None))


def _rule(spot: Spot, findings: Findings, variables: Variables) -> RuleSetting | None:
    errors_before = findings.errors
    values = read_options(spot, RULE_OPTIONS, findings, variables)
    patterns = [(effect, values.pop(effect)) for effect in ("allow", "deny") if effect in values]
    if findings.errors > errors_before:
        return None
    if len(patterns) != 1:
        message = f"a rule has one of 'allow' and 'deny', this one has {'both' if patterns else 'neither'}"
        findings.report(IMPOSSIBLE_VALUE, spot, message, 'for example {"deny": "fs__write_*"}')
        return None
    ((effect, pattern),) = patterns
    place = spot.where()
    bare = RuleSetting(
        effect="allow" if effect == "allow" else "deny",
        pattern=str(pattern),
        where=f"{place.file}:{place.line}",
    )
    return replace(bare, **values)


def _patterns(spot: Spot, findings: Findings) -> dict[str, object] | None:
    return fields.entries(spot, findings, fields.text, "an object with a pattern for each parameter")


def _mode(spot: Spot, findings: Findings) -> str | None:
    found = fields.text(spot, findings)
    if found is None or found in _MODES:
        return found
    # As in the seeds, whose files we read too: what nobody knows is the stricter one.
    findings.report(
        IMPOSSIBLE_VALUE,
        spot,
        f"{quoted(found)} is none of 'allowlist', 'denylist'",
        "it is taken as 'allowlist', which is the stricter one",
        severity="warning",
    )
    return _MODES[0]


def _each(possible: Callable[[str], bool], expected: str, hint: str) -> fields.Reader:
    """A reader of lists of strings of which each must be possible."""

    def read(spot: Spot, findings: Findings) -> tuple[str, ...] | None:
        found = fields.texts(spot, findings)
        if found is None:
            return None
        wrong = [item for text, item in zip(found, spot.items(), strict=True) if not possible(text)]
        for item in wrong:
            # Not quoted: a URL in place of a domain may have a password in it.
            findings.report(IMPOSSIBLE_VALUE, item, f"expected {expected}", hint)
        return None if wrong else found

    return read


def _names_program(line: str) -> bool:
    # Paid for only by who writes such a list.
    from shlex import split  # noqa: PLC0415

    try:
        program = next(iter(split(line)), "")
    except ValueError:
        return False
    return bool(program) and not program.endswith("/") and (program.startswith("/") or "/" not in program)


def _is_network(text: str) -> bool:
    # Paid for only by who writes such a list: it takes as long to import as all of this package.
    from ipaddress import ip_network  # noqa: PLC0415

    try:
        ip_network(text)
    except ValueError:
        return False
    return True


def _is_domain(text: str) -> bool:
    return re.fullmatch(_DOMAIN, text) is not None


def _port(spot: Spot, findings: Findings) -> int | None:
    value = spot.node.value
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _HIGHEST_PORT:
        return value
    findings.report(IMPOSSIBLE_VALUE, spot, f"expected a port, from 1 to {_HIGHEST_PORT}")
    return None


def _ports(spot: Spot, findings: Findings) -> tuple[int, ...] | None:
    if not isinstance(spot.node.value, tuple):
        findings.wrong_type(spot, "a list of ports")
        return None
    found = [_port(item, findings) for item in spot.items()]
    ports = tuple(port for port in found if port is not None)
    return ports if len(ports) == len(found) else None


def _parameters(spot: Spot, findings: Findings) -> Joined | None:
    """Which parameters are what. The first that fits counts, so a later file's go in front."""
    if not isinstance(spot.node.value, dict):
        findings.wrong_type(spot, "an object with an object for each tool")
        return None
    found: list[ParameterSetting] = []
    for tool, member in spot.members():
        kinds = fields.entries(member, findings, _parameter_kind, "an object with a kind for each parameter")
        for parameter, kind in (kinds or {}).items():
            match kind:
                case "command" | "url" | "none":
                    found.append(ParameterSetting(tool=tool, parameter=parameter, kind=kind))
    return Joined(tuple(found), in_front=True)


def _sizes(spot: Spot, findings: Findings) -> dict[str, object] | None:
    return fields.entries(spot, findings, fields.whole(1), "an object with a number of bytes for each tool")


_commands = _each(
    _names_program,
    "a command that names a program",
    "write a name, an absolute path, or either with arguments",
)
_domains = _each(_is_domain, "a domain", "write example.org or *.example.org")
_networks = _each(_is_network, "a network", "write 10.1.0.0/16; what the mask leaves out is 0")

RULE_OPTIONS = (
    Option("allow", ("allow",), fields.filled_text),
    Option("deny", ("deny",), fields.filled_text),
    Option("unless", ("unless",), _patterns),
    Option("identity", ("identity",), fields.filled_text),
    Option("reason", ("reason",), fields.text),
)

COMMAND_OPTIONS = (
    Option("mode", ("mode",), _mode),
    Option("allowlist", ("allow", "allowlist"), _commands),
    Option("denylist", ("deny", "denylist"), _commands),
    Option("shell", ("shell",), fields.truth),
)

URL_OPTIONS = (
    Option("enabled", ("enabled",), fields.truth),
    Option("allow_private", ("allowPrivate", "allow_private"), fields.truth),
    Option("allowed_domains", ("allowedDomains", "allowed_domains"), _domains),
    Option("blocked_domains", ("blockedDomains", "blocked_domains"), _domains),
    Option("private_ranges", ("privateRanges", "private_ranges"), _networks),
    Option("ports", ("ports",), _ports),
)

POLICY_OPTIONS = (
    Option("commands", ("commands",), section(CommandSettings, COMMAND_OPTIONS)),
    Option("urls", ("urls",), section(UrlSettings, URL_OPTIONS)),
    Option("parameters", ("parameters",), _parameters),
)

# The seeds' names for the first two, under `security` at the root of a file.
SEED_POLICY_OPTIONS = (
    Option("commands", ("command_policy", "commandPolicy"), POLICY_OPTIONS[0].read, guards=True),
    Option("urls", ("url_policy", "urlPolicy"), POLICY_OPTIONS[1].read, guards=True),
)

RESULT_OPTIONS = (
    Option("max_bytes", ("maxBytes", "max_bytes"), fields.whole(1)),
    Option("per_tool", ("perTool", "per_tool"), _sizes),
    Option("tool", ("tool",), fields.truth),
    Option("sanitise", ("sanitise", "sanitize"), fields.truth),
    Option("strip_invisible", ("stripInvisible", "strip_invisible"), fields.truth),
)

AUDIT_OPTIONS = (
    Option("mode", ("mode",), fields.one_of(("best_effort", "strict", "off"))),
    Option("dir", ("dir",), Expanding(fields.folder)),
)
