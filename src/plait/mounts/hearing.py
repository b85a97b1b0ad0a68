"""What servers say unasked, and what they ask: to the clients of those views that have them."""

from collections.abc import Callable, Sequence

from msgspec import MsgspecError

from plait.mounts.changes import Changes
from plait.mounts.instance import Instance
from plait.mounts.view import View
from plait.routing import backchannel
from plait.routing.subscriptions import UPDATED, Subscriptions
from plait.session.exchange import Exchange, OnProgress, Reply
from plait.wire.address import read_text
from plait.wire.envelope import Fields

Watcher = Callable[[Instance, str | None], None]


class Hearing:
    def __init__(
        self, views_of: Callable[[Instance], Sequence[View]], subscriptions: Subscriptions, changes: Changes
    ) -> None:
        self._views_of = views_of
        self._subscriptions = subscriptions
        self._changes = changes
        self.watchers: list[Watcher] = []

    def heard(self, instance: Instance, method: str, params: Fields) -> None:
        match method:
            case "notifications/message":
                self._message(instance, params)
            case "notifications/resources/updated":
                self._updated(instance, params)
            case "notifications/elicitation/complete":
                for view in self._views_of(instance):
                    view.audience.elicitation_completed(params)
            case _:
                instance.counted("unknown notification", method)

    def _message(self, instance: Instance, params: Fields) -> None:
        working_for = [] if instance.link is None else instance.link.working_for()
        for view in self._views_of(instance):
            if view.audience.message(instance.prefix, params, working_for):
                return

    def _updated(self, instance: Instance, params: Fields) -> None:
        try:
            uri = read_text(params["uri"])
        except (KeyError, MsgspecError, UnicodeDecodeError):
            instance.counted("malformed notification", UPDATED)
            return
        self._changes.updated(instance.prefix, uri)
        if not self._subscriptions.updated(instance, uri, params):
            instance.counted("update of a resource that nobody watches", uri)
        self.tell_watchers(instance, uri)

    def tell_watchers(self, instance: Instance, uri: str | None) -> None:
        for watcher in self.watchers:
            watcher(instance, uri)

    async def consulted(
        self,
        instance: Instance,
        method: str,
        params: Fields,
        on_progress: OnProgress,
        working_for: Sequence[Exchange],
    ) -> Reply:
        present = [caller for view in self._views_of(instance) for caller in view.audience]
        declared = instance.behalf.result().capabilities
        question = backchannel.Question(str(instance.prefix), method, params, declared)
        return await backchannel.ask(question, working_for, present, on_progress)
