"""From one configuration to the next while everything runs: what stays, what goes and what comes.

Whatever can fail is done in `prepare`, which changes nothing: a configuration that cannot be followed
leaves everything as it was. `follow` then only exchanges what is ready, without a pause in which somebody
could look. A server is the same one as before if all that its file says of it is, wherever it says so.
"""

import contextlib
from collections.abc import Callable, Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from plait.compositor import Compositor
from plait.config.codes import UNGUARDED
from plait.config.model import Config, Server, Settings, StdioServer
from plait.config.options import OPTIONS
from plait.config.problem import Problem
from plait.errors import AlreadyMounted, ConfigError, NotMounted, Unmountable
from plait.furnish import complaint, mount_builtin, mount_configured
from plait.mounts.mount import Mount
from plait.mounts.state import MountEvent
from plait.openers import Openers, prefix_of
from plait.outfit import guards_of
from plait.pipeline.compose import Layer
from plait.pipeline.rules import BUILTIN
from plait.routing.naming import InvalidPrefix
from plait.upstream.opening import Opener

LIVE = frozenset(("rules", "allowed_tools", "policy", "results", "limits", "env", "builtin", "workspace"))
"""The settings that can change while we run; all others are built into what runs."""
HIDING = frozenset(("rules", "allowed_tools"))
"""Those that decide what a client sees."""


class Arrival(Struct):
    """A server of the file that is ready to be mounted."""

    server: Server
    opener: Opener


class Step(Struct):
    """All that there is to do."""

    config: Config
    """As it will be followed: what cannot change yet is in it as it was."""
    guards: list[Layer]
    order: Collection[str]
    """The keys of all its mounts, as the file has them."""
    leaving: Mapping[str, Mount]
    arriving: Mapping[str, Arrival | None]
    """None: our own tools."""
    changed: list[str]
    """The settings that count from now on, by their fields."""
    postponed: list[str]
    """Those that count from the next start on, as a file spells them."""
    complaints: list[str]

    def __str__(self) -> str:
        """What is done, in one line; empty if nothing is."""
        parts = {
            "added": [key for key in self.arriving if key not in self.leaving],
            "restarted": [key for key in self.arriving if key in self.leaving],
            "removed": [key for key in self.leaving if key not in self.arriving],
            "changed": [_spelling(name) for name in self.changed],
        }
        return "; ".join(f"{what} {', '.join(names)}" for what, names in parts.items() if names)


# ---- what is to be done


def prepare(compositor: Compositor, new: Config) -> Step:
    """Raises ConfigError, with every reason, where the new configuration cannot be followed."""
    old = compositor.config
    assert old is not None, "a configuration follows one"
    _refuse([_told(problem) for problem in _new_errors(old, new)])
    settings, changed, postponed = _settled(old.settings, new.settings)
    config = replace(new, settings=settings)
    assert compositor.outfit is not None
    guards = guards_of(config, compositor.outfit.store)
    mounted, makings = _mounted(compositor, old), _makings(config)
    before = _makings(old)
    leaving = {key: mount for key, mount in mounted.items() if before[key] != makings.get(key)}
    arriving, complaints = _arrivals(compositor, config, mounted, leaving)
    complaints = [*(problem.render() for problem in new.problems), *complaints]
    return Step(config, guards, makings.keys(), leaving, arriving, changed, postponed, complaints)


def _refuse(reasons: list[str]) -> None:
    if reasons:
        raise ConfigError("; ".join(reasons))


def _new_errors(old: Config, new: Config) -> list[Problem]:
    """What was wrong from the start is no reason to refuse a file in which something else is better."""
    known = {(each.code, each.server, each.message) for each in old.problems}
    # That a guard cannot be read has another problem beside it, and the old guards stay in force.
    errors = [each for each in new.problems if each.severity == "error" and each.code != UNGUARDED]
    return [each for each in errors if (each.code, each.server, each.message) not in known]


def _told(problem: Problem) -> str:
    return f"{problem} ({'; '.join(problem.hints)})" if problem.hints else str(problem)


def _makings(config: Config) -> dict[str, object]:
    """By key, what each mount is made of: where that is the same, nothing is restarted."""
    settings = config.settings
    made: dict[str, object] = {BUILTIN: (settings.policy, settings.workspace)} if settings.builtin else {}
    for server in config.servers:
        with contextlib.suppress(InvalidPrefix):
            passed_on = settings.env if isinstance(server, StdioServer) else ()
            made.setdefault(_key(server), (_anywhere(server), passed_on))
    return made


def _key(server: Server) -> str:
    """As the registry has it."""
    return prefix_of(server) or f"({server.name})"


def _anywhere(server: Server) -> Server:
    """A line that has moved is no change."""
    return replace(server, where=None)


def _mounted(compositor: Compositor, config: Config) -> dict[str, Mount]:
    """What is there of this configuration: perhaps a prefix was taken, or somebody unmounted it."""
    servers = [_anywhere(server) for server in config.servers]
    found = {key: _find(compositor, key) for key in _makings(config)}
    return {
        key: mount
        for key, mount in found.items()
        if mount is not None and (key == BUILTIN or _given(mount) in servers)
    }


def _given(mount: Mount) -> object:
    return _anywhere(mount.server) if isinstance(mount.server, Server) else mount.server


def _find(compositor: Compositor, key: str) -> Mount | None:
    try:
        return compositor.registry.find(key)
    except NotMounted:
        return None


def _arrivals(
    compositor: Compositor, config: Config, mounted: Mapping[str, Mount], leaving: Collection[str]
) -> tuple[dict[str, Arrival | None], list[str]]:
    """Every server to mount, ready; and what is wrong with those that could not be mounted before either."""
    assert compositor.config is not None
    openers = Openers(config.settings, compositor.environ, compositor.guardian)
    running = [_given(mount) for mount in mounted.values()]
    absent = [each for each in map(_anywhere, compositor.config.servers) if each not in running]
    seen = {BUILTIN} if config.settings.builtin else set()
    arriving: dict[str, Arrival | None] = {key: None for key in seen if key not in mounted or key in leaving}
    complaints: list[str] = []
    faults: list[str] = []
    for server in config.servers:
        try:
            key = _key(server)
            if key in seen or (key not in mounted and _find(compositor, key) is not None):
                raise AlreadyMounted(f"{key} is already mounted")
            seen.add(key)
            if key not in mounted or key in leaving:
                arriving[key] = Arrival(server, openers.of(server, server.name, server.settings))
        except (AlreadyMounted, InvalidPrefix, Unmountable) as problem:
            (complaints if _anywhere(server) in absent else faults).append(complaint(server, problem))
    _refuse(faults)
    return arriving, complaints


# ---- settings


def _settled(old: Settings, new: Settings) -> tuple[Settings, list[str], list[str]]:
    """The settings to follow, which of them are new, and which must wait."""
    names = [name for name in Settings.__struct_fields__ if _differs(name, old, new)]
    changed = [name for name in names if name in LIVE]
    waiting = [name for name in names if name not in LIVE]
    settled = replace(new, **{name: getattr(old, name) for name in waiting})
    postponed = [_spelling(name) for name in waiting]
    if old.results.tool is not new.results.tool:  # a mount of our own has it, or has it not
        settled = replace(settled, results=replace(new.results, tool=old.results.tool))
        changed = [name for name in changed if name != "results" or settled.results != old.results]
        postponed.append("results.tool")
    return settled, changed, postponed


def _differs(name: str, old: Settings, new: Settings) -> bool:
    if name == "builtin":
        return bool(old.builtin) is not bool(new.builtin)
    if name == "rules":
        before, after = ([replace(rule, where="") for rule in each.rules] for each in (old, new))
        return before != after
    return bool(getattr(old, name) != getattr(new, name))


def _spelling(name: str) -> str:
    return next(option.spellings[0] for option in OPTIONS if option.field == name)


# ---- doing it


async def follow(compositor: Compositor, step: Step, see_off: Callable[[Mount], None]) -> None:
    """Do it. `see_off` is given what nobody sees any more: its calls may finish, then it is closed."""
    registry = compositor.registry
    for mount in step.leaving.values():
        await registry.withdraw(mount)
        registry.events.tell(mount.prefix, MountEvent.UNMOUNTED)
        see_off(mount)
    compositor.adopt(step.config, step.guards)
    for arrival in step.arriving.values():
        if arrival is None:
            await mount_builtin(compositor)
        else:
            await mount_configured(compositor, arrival.server, arrival.opener)
    registry.arrange(list(step.order))
    if HIDING.intersection(step.changed):
        registry.judged_anew()
    compositor.complaints = step.complaints
