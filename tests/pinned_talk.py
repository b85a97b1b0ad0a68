"""Conversations with the pinned servers, for tests: a compositor, its clients, what they read and call."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from msgspec.json import decode

from clients import Client, RawClient
from fakes import FakeServer, Message, words
from plait.compositor import Compositor
from plait.config.model import Settings
from plait.pipeline.compose import Layer
from plait.routing.naming import MountPrefix

UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"
WATCHABLE = {"tools": {}, "resources": {"subscribe": True, "listChanged": True}}


def server(name: str, *resources: str | Message, tools: Sequence[str] = ("t",)) -> FakeServer:
    """One whose resources can be watched."""
    return FakeServer(name, tools=tools, resources=resources, capabilities=WATCHABLE)


@asynccontextmanager
async def behind(
    *servers: FakeServer, settings: Settings | None = None, layers: Sequence[Layer] = ()
) -> AsyncIterator[Compositor]:
    """A compositor with these servers, each under its name."""
    async with Compositor(settings, layers) as made:
        for each in servers:
            await made.mount(MountPrefix(each.name), each)
        yield made


@asynccontextmanager
async def before(
    *servers: FakeServer, settings: Settings | None = None, layers: Sequence[Layer] = ()
) -> AsyncIterator[tuple[Compositor, Client]]:
    """The same, with a client."""
    async with behind(*servers, settings=settings, layers=layers) as made, Client(made) as client:
        await settle()
        yield made, client


async def settle() -> None:
    """On a jumping clock: what servers were said to have changed has been read again."""
    await asyncio.sleep(1.0)


async def use(client: Client, tool: str, **arguments: object) -> Message:
    """The structured content of a call of `resources`; what its text says is the same."""
    result = await client.call(f"resources__{tool}", **arguments)
    assert not result.get("isError"), words(result)
    structured = result["structuredContent"]
    assert decode(words(result)) == structured
    assert isinstance(structured, dict)
    return structured


async def fail(client: Client, tool: str, **arguments: object) -> str:
    """What the failure of a call says."""
    result = await client.call(f"resources__{tool}", **arguments)
    assert result["isError"] is True
    return words(result)


async def look(client: Client, uri: str) -> object:
    """A JSON resource, as the client itself reads it."""
    result = await client.send("resources/read", uri=uri)
    return decode(str(only(result["contents"])["text"]))


def only(found: object) -> Message:
    """The one entry of a list."""
    assert isinstance(found, list)
    [entry] = found
    assert isinstance(entry, dict)
    return entry


def updates(client: Client) -> list[object]:
    """The resources that the client was told are others now."""
    return [params["uri"] for params in client.told(UPDATED)]


@asynccontextmanager
async def somebody(made: Compositor, identity: str) -> AsyncIterator[RawClient]:
    """A client of this identity."""
    async with RawClient(made) as client:
        client.connection.identity = identity
        client.initialize()
        yield client


async def ask(client: RawClient, method: str, **params: object) -> Message:
    id = len(client.messages) + 100
    client.say(method, id, **params)
    await client.answered()
    return client.answer(id)


async def call(client: RawClient, tool: str, **arguments: object) -> Message:
    result = (await ask(client, "tools/call", name=tool, arguments=arguments))["result"]
    assert isinstance(result, dict)
    return result
