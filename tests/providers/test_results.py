"""What was cut from results, as resources and as a tool: each reads only its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from clients import ALONE, RawClient, error_of, result_of
from clock import jumping
from fakes import FakeServer, Message, text, words
from plait.compositor import Compositor
from plait.pipeline.kept import KeptResults
from plait.pipeline.limits import ResultGuard
from plait.providers.results import PREFIX, ResultsOpener
from plait.routing.naming import MountPrefix

READER = f"{PREFIX}__read_result"
WHOLE = "".join(f"line {number}\n" for number in range(1000))


@asynccontextmanager
async def behind(*identities: str, tool: bool = False) -> AsyncIterator[list[RawClient]]:
    """A server with a large result, and clients of these identities."""
    server = FakeServer("s", tools=["t"])
    server.answers["tools/call"] = lambda params: text(WHOLE)
    store = KeptResults(page_bytes=4000)
    guard = ResultGuard(100, store=store, reader=READER if tool else "")
    async with Compositor(ALONE, [guard]) as made:
        await made.mount(MountPrefix("s"), server, name="s", wait=False)
        opener = ResultsOpener(store, tool=tool)
        await made.mount(MountPrefix(PREFIX), opener, name="results", pinned=True, wait=False)
        clients = [await RawClient(made).__aenter__() for _ in identities]
        for client, identity in zip(clients, identities, strict=True):
            client.connection.identity = identity
            client.initialize()
        yield clients
    store.close()


async def ask(client: RawClient, id: int, method: str, **params: object) -> Message:
    client.say(method, id, **params)
    await client.answered()
    return client.answer(id)


async def link(client: RawClient) -> str:
    """Make a large result; the link in it."""
    result = result_of(await ask(client, 2, "tools/call", name="s__t"))
    content = result["content"]
    assert isinstance(content, list)
    assert content[0]["text"] == WHOLE[:100] + "\n[truncated]"
    return str(content[1]["uri"])


def contents(answer: Message) -> list[Message]:
    found = result_of(answer)["contents"]
    assert isinstance(found, list)
    return found


@pytest.mark.requirement("G25", "S1-AC17")
@jumping
async def test_the_link_is_read_page_by_page() -> None:
    async with behind("anonymous") as [client]:
        following, pages, id = await link(client), [], 10
        while following:
            page, *more = contents(await ask(client, id, "resources/read", uri=following))
            pages.append(str(page["text"]))
            following, id = str(more[0]["uri"]) if more else "", id + 1
            if more:
                assert f"the next page is {following}" in str(more[0]["text"])
        assert "".join(pages) == WHOLE
        assert len(pages) == 3


@jumping
async def test_another_identity_cannot_read_it_nor_tell_that_it_is_there() -> None:
    async with behind("alice", "bob", "alice") as [alice, bob, also_alice]:
        uri = await link(alice)
        theirs = error_of(await ask(bob, 10, "resources/read", uri=uri))
        nobodys = error_of(await ask(bob, 11, "resources/read", uri=uri[:-1] + "~"))
        assert theirs["code"] == nobodys["code"] == -32002
        assert str(theirs["message"]).replace(uri, "") == str(nobodys["message"]).replace(uri[:-1] + "~", "")
        assert contents(await ask(also_alice, 10, "resources/read", uri=uri))[0]["text"] == WHOLE[:4000]


@jumping
async def test_nor_with_the_tool() -> None:
    async with behind("alice", "bob", tool=True) as [alice, bob]:
        uri = await link(alice)
        mine = result_of(await ask(alice, 10, "tools/call", name=READER, arguments={"id": uri, "limit": 50}))
        theirs = result_of(await ask(bob, 10, "tools/call", name=READER, arguments={"id": uri}))
        assert words(mine).startswith(WHOLE[:50])
        assert theirs["isError"] is True
        assert "not found" in words(theirs)


@jumping
async def test_a_page_that_the_tool_reads_is_not_cut_again() -> None:
    async with behind("anonymous", tool=True) as [client]:
        uri = await link(client)
        page = words(result_of(await ask(client, 10, "tools/call", name=READER, arguments={"id": uri})))
        assert page.startswith(WHOLE[:4000] + "\n[4000 of ")
        assert page.endswith("go on with offset 4000]")


@jumping
async def test_results_are_listed_as_a_template_and_never_one_by_one() -> None:
    async with behind("anonymous") as [client]:
        await link(client)
        templates = result_of(await ask(client, 10, "resources/templates/list"))["resourceTemplates"]
        assert isinstance(templates, list)
        assert [each["uriTemplate"] for each in templates] == ["plait://results/{id}{?offset}"]
        assert result_of(await ask(client, 11, "resources/list"))["resources"] == []


@pytest.mark.parametrize(
    "arguments", [{"id": "x", "offset": -1}, {"id": "x", "limit": "many"}, {}, {"id": 7}]
)
@jumping
async def test_a_tool_call_that_makes_no_sense_is_an_error_result(arguments: Message) -> None:
    async with behind("anonymous", tool=True) as [client]:
        result = result_of(await ask(client, 10, "tools/call", name=READER, arguments=arguments))
        assert result["isError"] is True
