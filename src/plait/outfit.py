"""What a configuration puts around the servers: guards, the record of calls, and what was cut."""

from collections.abc import Callable, Collection, Mapping

from msgspec import MsgspecError, Struct
from msgspec.json import decode

from plait.config.folders import state_folder
from plait.config.model import Config
from plait.openers import prefix_of
from plait.pipeline.audit import AuditLog
from plait.pipeline.compose import Layer
from plait.pipeline.configured import make_audit, make_guards
from plait.pipeline.kept import KeptResults
from plait.pipeline.redaction import secret_parameters
from plait.providers.results import PREFIX
from plait.routing.catalog import Route


class Outfit(Struct):
    store: KeptResults
    guards: list[Layer]
    audit: AuditLog | None
    secrets: "SecretParameters"

    @property
    def layers(self) -> list[Layer]:
        return self.guards if self.audit is None else [self.audit, *self.guards]


class SecretParameters:
    """Which parameters of a tool its own schema calls secret; read once for each listing of it."""

    def __init__(self) -> None:
        self.routes: Callable[[], Mapping[str, Route]] = dict
        self._known: dict[str, tuple[Route, Collection[str]]] = {}

    def __call__(self, name: str) -> Collection[str]:
        route = self.routes().get(name)
        if route is None:
            return ()
        known = self._known.get(name)
        if known is None or known[0] is not route:
            known = self._known[name] = route, _secrets_of(route)
        return known[1]


def _secrets_of(route: Route) -> Collection[str]:
    try:
        return () if route.schema is None else secret_parameters(decode(route.schema))
    except (MsgspecError, UnicodeDecodeError, RecursionError):
        return ()


def outfit(config: Config, environ: Mapping[str, str]) -> Outfit:
    settings, secrets = config.settings, SecretParameters()
    store = KeptResults(state_folder(environ) / "results")
    return Outfit(store, guards_of(config, store), make_audit(settings, environ, secrets), secrets)


def guards_of(config: Config, store: KeptResults) -> list[Layer]:
    settings = config.settings
    return make_guards(
        settings,
        store,
        builtin=bool(settings.builtin),
        untouched={prefix_of(server) for server in config.servers if not server.settings.sanitise},
        reader=f"{PREFIX}{settings.separator}read_result",
    )
