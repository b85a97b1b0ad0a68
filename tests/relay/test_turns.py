"""A server's places and its queue, as clients of the compositor meet them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from clients import Client, RawClient, compositor, error_of, result_of
from clock import jumping, now, quiet
from fakes import FakeServer, Held, Message, text, words
from plait.compositor import Compositor
from plait.config.model import ServerSettings
from plait.routing.naming import MountPrefix


class Slow(FakeServer):
    """A server that answers its calls one by one, as the test tells it to."""

    def __init__(self, name: str) -> None:
        super().__init__(name, tools=["t"], resources=["x:1"])
        self.held: dict[object, Held] = {}
        self.answers["tools/call"] = self._hold
        self.answers["resources/read"] = self._hold

    def _hold(self, params: Message) -> Held:
        arguments = params.get("arguments")
        number = arguments["n"] if isinstance(arguments, dict) else params["uri"]
        return self.held.setdefault(number, Held())

    @property
    def got(self) -> list[object]:
        """The numbers of the calls that reached it, in order."""
        return list(self.held)

    def finish(self, number: object) -> None:
        self.held[number].answer(text(f"done {number}"))


@contextlib.asynccontextmanager
async def behind(
    server: FakeServer, concurrency: int, queue: int
) -> AsyncIterator[tuple[Compositor, RawClient]]:
    """The server, with so many places; a free one beside it; and a client."""
    settings = ServerSettings(concurrency=concurrency, queue=queue)
    async with compositor(FakeServer("free", tools=["t"])) as made:
        await made.mount(MountPrefix(server.name), server, name=server.name, settings=settings, wait=False)
        async with RawClient(made) as client:
            client.initialize()
            await quiet()
            yield made, client


async def call(client: RawClient, *numbers: int) -> None:
    for number in numbers:
        client.say("tools/call", number, name="slow__t", arguments={"n": number})
        await quiet()


def answered(client: RawClient) -> list[object]:
    """The ids of the calls that have their answer, in order."""
    return [message["id"] for message in client.messages if "method" not in message][1:]


def failure(client: RawClient, id: int) -> str:
    result = result_of(client.answer(id))
    assert result["isError"] is True
    return words(result)


@jumping
async def test_a_server_gets_as_many_calls_as_it_has_places_and_then_first_come_first_served() -> None:
    server = Slow("slow")
    async with behind(server, 2, 10) as (_, client):
        await call(client, 10, 11, 12, 13, 14)
        assert server.got == [10, 11]
        for number, next_ones in ((11, [12]), (10, [13]), (12, [14]), (13, []), (14, [])):
            before = server.got
            server.finish(number)
            await quiet()
            assert server.got == before + next_ones
        assert answered(client) == [11, 10, 12, 13, 14]
        assert words(result_of(client.answer(14))) == "done 14"


@jumping
async def test_several_clients_share_the_places_and_the_queue() -> None:
    server = Slow("slow")
    async with behind(server, 1, 2) as (made, first), RawClient(made) as second:
        second.initialize()
        await call(first, 10)
        await call(second, 20)
        await call(first, 11)
        await call(second, 21)
        assert "is busy" in failure(second, 21)
        for number in (10, 20, 11):
            server.finish(number)
            await quiet()
        assert server.got == [10, 20, 11]
        assert (answered(first), answered(second)) == ([10, 11], [21, 20])


@jumping
async def test_a_full_queue_answers_at_once_with_a_result_that_names_the_server() -> None:
    server = Slow("slow")
    async with behind(server, 1, 1) as (_, client):
        await call(client, 10, 11)
        before = now()
        client.say("tools/call", 12, name="slow__t", arguments={"n": 12})
        await quiet()
        assert now() - before < 0.001
        assert failure(client, 12) == "server 'slow' is busy: 1 calls run and 1 wait; try again later"
        assert result_of(client.answer(12))["_meta"] == {"plait/fault": {"kind": "busy", "server": "slow"}}
        assert server.got == [10]
        for number in (10, 11):
            server.finish(number)
            await quiet()
        await call(client, 13)
        server.finish(13)
        await client.answered()
        assert server.got == [10, 11, 13]


@jumping
async def test_other_requests_share_the_places_and_are_refused_as_what_they_are() -> None:
    server = Slow("slow")
    async with behind(server, 1, 0) as (_, client):
        await call(client, 10)
        client.say("resources/read", 11, uri="x:1")
        await quiet()
        error = error_of(client.answer(11))
        assert "server 'slow' is busy" in str(error["message"])
        server.finish(10)
        await client.answered()


@jumping
async def test_other_servers_are_not_affected() -> None:
    server = Slow("slow")
    async with behind(server, 1, 1) as (made, client), Client(made) as other:
        await call(client, 10, 11, 12)
        before = now()
        assert words(await other.call("free__t")) == "free: t {}"
        assert await other.names() == ["free__t", "slow__t"]
        client.say("ping", 13)
        await quiet()
        assert result_of(client.answer(13)) == {}
        assert now() - before < 0.001
        for number in (10, 11):
            server.finish(number)
            await quiet()


# ---- giving up


@jumping
async def test_a_call_that_is_cancelled_while_it_waits_never_reaches_the_server_and_makes_room() -> None:
    server = Slow("slow")
    async with behind(server, 1, 2) as (_, client):
        await call(client, 10, 11, 12)
        client.say("notifications/cancelled", requestId=11)
        await call(client, 13)
        assert answered(client) == []
        for number in (10, 12, 13):
            server.finish(number)
            await quiet()
        assert server.got == [10, 12, 13]
        assert answered(client) == [10, 12, 13]
        assert server.told("notifications/cancelled") == []


@jumping
async def test_a_call_that_is_cancelled_while_it_runs_gives_its_place_on() -> None:
    server = Slow("slow")
    async with behind(server, 1, 2) as (_, client):
        await call(client, 10, 11)
        client.say("notifications/cancelled", requestId=10)
        await quiet()
        assert server.got == [10, 11]
        assert len(server.told("notifications/cancelled")) == 1
        server.finish(11)
        await client.answered()


@jumping
async def test_a_client_that_leaves_takes_its_waiting_calls_along() -> None:
    server = Slow("slow")
    async with behind(server, 1, 5) as (made, client):
        await call(client, 10)
        async with RawClient(made) as leaving:
            leaving.initialize()
            await call(leaving, 20, 21, 22, 23, 24)
        await call(client, 11)
        server.finish(10)
        await quiet()
        assert server.got == [10, 11]
        server.finish(11)
        await client.answered()


@jumping
async def test_a_call_that_is_not_answered_in_time_gives_its_place_on() -> None:
    server = Slow("slow")
    server.timeout = 5
    async with behind(server, 1, 5) as (_, client):
        await call(client, 10, 11)
        await asyncio.sleep(6)
        assert "5 s" in failure(client, 10)
        assert server.got == [10, 11]
        server.finish(11)
        await client.answered()
        assert answered(client) == [10, 11]


@jumping
async def test_a_call_waits_for_its_place_no_longer_than_a_call_may_take() -> None:
    server = Slow("slow")
    settings = ServerSettings(concurrency=1, queue=5, timeout=5)
    async with compositor() as made:
        await made.mount(MountPrefix(server.name), server, name=server.name, settings=settings, wait=False)
        async with RawClient(made) as client:
            client.initialize()
            await quiet()
            await call(client, 10, 11)
            await asyncio.sleep(6)
            assert "no place for this call within 5 s" in failure(client, 11)
            server.finish(10)
            await client.answered()
            await call(client, 12)
            assert server.got == [10, 12], "the place is free again, and nobody took it twice"
            server.finish(12)
            await client.answered()
            assert answered(client) == [11, 10, 12]


# ---- a server that ends


@jumping
async def test_a_server_that_ends_loses_no_place_and_leaves_no_call_without_its_answer() -> None:
    server = Slow("slow")
    async with behind(server, 2, 5) as (_, client):
        await call(client, 10, 11, 12, 13)
        server.end()
        await quiet()
        assert sorted(map(str, answered(client))) == ["10", "11", "12", "13"]
        assert all("server 'slow'" in failure(client, number) for number in (10, 11, 12, 13))
        assert server.got == [10, 11]
        await asyncio.sleep(60)
        await call(client, 20, 21)
        assert server.got[-2:] == [20, 21]
        for number in (20, 21):
            server.finish(number)
        await client.answered()


@pytest.mark.parametrize("queue", [0, 3])
@jumping
async def test_calls_for_a_server_that_is_being_started_again_wait_in_a_bounded_number(queue: int) -> None:
    server = Slow("slow")
    async with behind(server, 1, queue) as (_, client):
        server.answers["initialize"] = lambda params: Held()  # from now on it does not come up
        server.end()
        await quiet()
        numbers = range(10, 10 + queue + 3)
        await call(client, *numbers)
        refused = answered(client)
        assert refused == list(numbers[queue + 1 :])
        assert all("server 'slow' is busy" in failure(client, int(str(number))) for number in refused)
        await client.answered()
        assert sorted(map(str, answered(client))) == [str(number) for number in numbers]
        await call(client, 30)
        assert answered(client)[-1] != 30, "whoever has given up waits no more"
