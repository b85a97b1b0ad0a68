"""Servers' questions, to the right client or to nobody."""

import asyncio

import pytest

from clients import Client, compositor
from clock import jumping, quiet
from fakes import FakeServer, Held, Message, text, words

# ---- servers' questions


ASKABLE: Message = {"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}}


class Asking:
    """A server in the middle of a call of one of two clients, about to ask something."""

    def __init__(self, capabilities: Message | None = None) -> None:
        self.server = FakeServer("a", tools=["t"])
        self.held: list[Held] = []
        self.server.answers["tools/call"] = self._hold
        self.capabilities = ASKABLE if capabilities is None else capabilities

    def _hold(self, params: Message) -> Held:
        self.held.append(Held())
        return self.held[-1]

    async def ask(self, id: object, method: str, **params: object) -> Message:
        self.server.ask(id, method, params)
        await quiet()
        return self.server.wire.replies.get(id, {})

    def finish(self) -> None:
        for held in self.held:
            held.answer(text("done"))


@pytest.mark.parametrize(
    ("method", "params", "answer", "seen"),
    [
        ("sampling/createMessage", {"messages": [], "x": 1}, {"role": "assistant"}, {"messages": [], "x": 1}),
        ("elicitation/create", {"message": "Name?"}, {"action": "accept"}, {"message": "[a] Name?"}),
        (
            "elicitation/create",
            {"mode": "url", "message": "Log in", "url": "https://x", "elicitationId": "e"},
            {"action": "decline"},
            {"mode": "url", "message": "[a] Log in", "url": "https://x", "elicitationId": "e"},
        ),
        ("roots/list", {}, {"roots": [{"uri": "file:///"}]}, {}),
    ],
)
@jumping
async def test_a_question_goes_to_the_client_whose_call_raised_it(
    method: str, params: Message, answer: Message, seen: Message
) -> None:
    asking = Asking()
    async with (
        compositor(asking.server) as made,
        Client(made, ASKABLE) as ann,
        Client(made, ASKABLE) as bob,
        asyncio.TaskGroup() as group,
    ):
        bob.answers[method] = answer
        calling = group.create_task(bob.call("a__t"))
        await quiet()
        assert (await asking.ask("q", method, **params))["result"] == answer
        asking.finish()
        await calling
        assert ann.asked == []
        assert bob.asked == [(method, seen)]


@jumping
async def test_a_question_between_two_clients_is_put_to_neither() -> None:
    asking = Asking()
    async with compositor(asking.server) as made:
        async with Client(made, ASKABLE) as ann, Client(made, ASKABLE) as bob, asyncio.TaskGroup() as group:
            for client in (ann, bob):
                group.create_task(client.call("a__t"))
            await quiet()
            reply = await asking.ask("q", "roots/list")
            assert "cannot tell which client" in str(reply["error"])
            asking.finish()
        assert ann.asked == bob.asked == []


@jumping
async def test_a_client_that_cannot_be_asked_has_a_session_of_its_own_with_the_server() -> None:
    asking = Asking()
    async with compositor(asking.server) as made:
        async with Client(made, ASKABLE) as ann, Client(made) as bob, asyncio.TaskGroup() as group:
            group.create_task(bob.call("a__t"))
            await quiet()
            assert [list(behalf.capabilities) for behalf in asking.server.behalf] == [list(ASKABLE), []]
            reply = await asking.ask("q", "sampling/createMessage", messages=[])
            assert "no client behind this session can be asked that" in str(reply["error"])
            asking.finish()
        assert ann.asked == bob.asked == []


@jumping
async def test_a_question_of_a_call_that_is_cancelled_is_taken_back() -> None:
    asking = Asking()
    async with compositor(asking.server) as made, Client(made, ASKABLE) as client:
        client.answers["elicitation/create"] = Held()
        async with asyncio.TaskGroup() as group:
            calling = group.create_task(client.call("a__t"))
            await quiet()
            await asking.ask("q", "elicitation/create", message="m")
            asking.server.notify("notifications/cancelled", {"requestId": "q"})
            await quiet()
            assert client.retractions == 1
            asking.finish()
        assert words(calling.result()) == "done"
        assert asking.server.wire.replies == {}


@jumping
async def test_changed_roots_are_told_to_servers_by_a_client_that_has_some() -> None:
    server = FakeServer("a", tools=["t"])
    async with compositor(server) as made, Client(made, ASKABLE) as ann, Client(made) as bob:
        await ann.names()
        for client in (bob, ann):
            client.session.notify("notifications/roots/list_changed")
        await quiet()
        assert server.told("notifications/roots/list_changed") == [{}]


@jumping
async def test_a_ping_of_a_server_is_answered_by_us() -> None:
    server = FakeServer("a", tools=["t"])
    async with compositor(server) as made, Client(made) as client:
        await client.names()
        server.ask("p", "ping")
        await quiet()
        assert server.wire.replies["p"]["result"] == {}
        assert client.asked == []
