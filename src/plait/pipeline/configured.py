"""From settings to the guards and policies they ask for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Raw

from plait.config.model import Settings
from plait.pipeline.audit import AuditLog
from plait.pipeline.compose import Layer
from plait.pipeline.kept import KeptResults
from plait.pipeline.ledger_files import audit_folder
from plait.pipeline.limits import ResultGuard
from plait.pipeline.permissions import PermissionFilter
from plait.pipeline.rules import BUILTIN, Rule, Rules
from plait.session.exchange import Exchange

if TYPE_CHECKING:
    from plait.outbound.urls import UrlPolicy
    from plait.pipeline.commands import CommandPolicy
    from plait.pipeline.policy import Binding


def make_audit(
    settings: Settings, environ: Mapping[str, str], secrets_of: Callable[[str], Collection[str]]
) -> AuditLog | None:
    """`secrets_of`: from a tool's exposed name to its parameters that are secret."""
    if settings.audit.mode == "off":
        return None
    folder = Path(settings.audit.dir) if settings.audit.dir else audit_folder(environ)
    return AuditLog(folder, settings.audit.mode, secret_parameters=secrets_of)


def make_guards(
    settings: Settings, store: KeptResults, *, builtin: bool, untouched: Container[str], reader: str
) -> list[Layer]:
    """`builtin`: are our own tools served? `untouched`: the prefixes of servers whose text is left as it
    is; `reader`: the tool that reads what was cut."""
    results = settings.results
    rules = make_rules(settings)
    guards: list[Layer] = [PermissionFilter(rules=rules)] if rules else []
    if builtin or settings.policy.commands is not None or settings.policy.urls is not None:
        guards.append(_security(settings))
    guards.append(
        ResultGuard(
            results.max_bytes,
            per_tool=results.per_tool,
            store=store,
            sanitise=results.sanitise,
            strip_invisible=results.strip_invisible,
            untouched=untouched,
            reader=reader if results.tool else "",
            schema_of=_output_schema,
        )
    )
    return guards


def _output_schema(exchange: Exchange) -> Raw | None:
    return None if exchange.destination is None else exchange.destination.output_schema


def make_rules(settings: Settings) -> Rules:
    """The user's own rules first, then what `allowed_tools` of a seed's file leaves out."""
    own = [
        Rule(each.effect, each.pattern, each.unless, each.identity, each.reason, each.where)
        for each in settings.rules
    ]
    return Rules([*own, *Rules.of_allowed(settings.allowed_tools)])


def _resource_tools(settings: Settings) -> list[Binding]:
    """What our own tools read are resources of servers, by URIs of any kind: nobody connects to them."""
    from plait.pipeline.policy import Binding  # noqa: PLC0415  brings the URL parser along

    ours = f"resources{settings.separator}*"
    return [] if settings.resource_tools is False else [Binding(ours, "uri", "none")]


def _security(settings: Settings) -> Layer:
    """A policy that the user wrote covers every server; the ones we ship cover our own tools."""
    from plait.pipeline.policy import Binding, SecurityGuard  # noqa: PLC0415  brings the URL parser along

    written = settings.policy
    return SecurityGuard(
        command_policy(settings),
        url_policy(settings),
        commands_of=None if written.commands is not None else (BUILTIN,),
        urls_of=None if written.urls is not None else (BUILTIN,),
        bindings=[
            *(Binding(each.tool, each.parameter, each.kind) for each in written.parameters),
            *_resource_tools(settings),
        ],
    )


def workspace_of(settings: Settings) -> Path:
    """The folder that the built-in tools work in: the one that is set, or the one we were started in."""
    return Path(settings.workspace or ".").resolve()


def command_policy(settings: Settings) -> CommandPolicy:
    """As it is written, or the one we ship. Commands may write into the workspace."""
    from plait.pipeline.commands import CommandPolicy  # noqa: PLC0415  only where commands are judged

    written, roots = settings.policy.commands, (workspace_of(settings),)
    if written is None:
        return CommandPolicy(roots=roots)
    return CommandPolicy.configured(
        written.mode, written.allowlist, written.denylist, shell=written.shell, roots=roots
    )


def url_policy(settings: Settings) -> UrlPolicy:
    from plait.outbound.urls import UrlPolicy  # noqa: PLC0415  only where URLs are judged

    written = settings.policy.urls
    if written is None:
        return UrlPolicy()
    return UrlPolicy(
        enabled=written.enabled,
        allow_private=written.allow_private,
        allowed_domains=written.allowed_domains,
        blocked_domains=written.blocked_domains,
        private_ranges=written.private_ranges,
        ports=written.ports,
    )
