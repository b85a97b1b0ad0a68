"""Who could do a task of this caller, why the others could not, and which tools there are for it."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from msgspec import Struct

from plait.config.delegation import DelegationConfig, DelegationTarget
from plait.delegation import claude, host
from plait.delegation.offer import offered
from plait.delegation.schema import Toolset
from plait.routing.resolver import Resolver
from plait.session.exchange import Caller, Handler
from plait.wire.spec import Kind

_log = logging.getLogger("plait.delegation")

BRAINS = (DelegationTarget.CLAUDE, DelegationTarget.CLAUDE_FLOW, DelegationTarget.HOST)


class Surroundings(Struct, frozen=True):
    """What delegation needs of the compositor that it is mounted in."""

    environ: Mapping[str, str]
    dispatch: Handler
    """Where a client's requests begin, before any guard."""
    resolver: Callable[[], Resolver]
    settled: Callable[[Caller], Awaitable[None]]
    """Wait, not for long, for servers that are still starting."""
    flow: str
    """The prefix of claude-flow."""


class Targets:
    def __init__(self, config: DelegationConfig, around: Surroundings) -> None:
        self._config = config
        self._around = around

    def available(self, caller: Caller) -> list[DelegationTarget]:
        return [target for target in BRAINS if self.absence(target, caller) is None]

    def absence(self, target: DelegationTarget, caller: Caller) -> str | None:
        """Why this caller's task cannot be handed on to it; None if it can."""
        config = self._config
        match target:
            case DelegationTarget.CLAUDE:
                return self.keyless if config.claude_enabled else "delegation.claude_enabled is not set"
            case DelegationTarget.CLAUDE_FLOW:
                off = "delegation.claude_flow_enabled is not set"
                return self._flow_absence(caller) if config.claude_flow_enabled else off
            case DelegationTarget.HOST:
                return host.absence(caller) if config.host_enabled else "delegation.host_enabled is not set"
        return None

    @property
    def keyless(self) -> str | None:
        """Why there is no Claude at all; None if there is."""
        return claude.absence(self._config, self._around.environ)

    def _flow_absence(self, caller: Caller) -> str | None:
        toolset = self.tools(caller, DelegationTarget.CLAUDE_FLOW)
        if not toolset.definitions:
            return f"the server '{self._around.flow}' is not up, or has no tools that this task may use"
        if self.keyless is None:
            return None
        task = self._config.claude_flow_task
        if task is None:
            return f"{self.keyless}; or name a tool that takes whole tasks in delegation.claude_flow_task"
        missing = f"the server '{self._around.flow}' has no tool '{task.tool}' that this task may use"
        return None if self.task_tool(caller, toolset) is not None else missing

    def tools(
        self, caller: Caller, target: DelegationTarget, narrowing: Sequence[Sequence[str]] = ()
    ) -> Toolset:
        """Those of the catalog as it is now; claude-flow is given its own only."""
        resolver, config = self._around.resolver(), self._config
        if target is not DelegationTarget.CLAUDE_FLOW:
            return offered(resolver, caller, narrowing, config.excluded_tools)
        narrowing = (*narrowing, config.claude_flow_tools)
        return offered(resolver, caller, narrowing, config.excluded_tools, self._around.flow)

    def task_tool(self, caller: Caller, toolset: Toolset) -> str | None:
        """What a model would call the tool of claude-flow that takes whole tasks, if it is on offer."""
        wanted = self._config.claude_flow_task
        routes = self._around.resolver().listing(Kind.TOOLS, caller).routes.values()
        exposed = {
            route.exposed
            for route in routes
            if wanted is not None and (route.server, route.native_name) == (self._around.flow, wanted.tool)
        }
        return next((name for name, each in toolset.definitions.items() if each.name in exposed), None)


def tell_missing(config: DelegationConfig, environ: Mapping[str, str], servers: Collection[str]) -> None:
    """One line for each target that is enabled and cannot be used; everything else goes on (FR-008)."""
    missing = claude.absence(config, environ)
    if config.claude_enabled and missing is not None:
        _log.warning("no task is handed on to claude: %s", missing)
    name = config.claude_flow_server
    if config.claude_flow_enabled and name not in servers:
        _log.warning(
            "no task is handed on to claude_flow: there is no server '%s'; see delegation.claude_flow_server",
            name,
        )
