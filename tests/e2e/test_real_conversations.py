"""Real servers that speak unasked or ask back: the same directly and behind plait, but for our two changes.

A log message's `logger` says which server it comes from, and a form's message does.
"""

import asyncio
from pathlib import Path

import mcp_types as types
import pytest
from pydantic import FileUrl

from gateway import PATIENCE
from peers import Peers
from witness import Params, Side, Witness

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

CHANGED = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"
GRAPH = "memory://knowledge-graph"


@pytest.fixture
def peers(tmp_path: Path) -> Peers:
    return Peers(tmp_path.resolve())


# ---- what servers say unasked


async def test_progress_arrives_step_by_step(peers: Peers) -> None:
    async def talk(side: Side) -> object:
        steps: list[tuple[float, float | None, str | None]] = []
        last = asyncio.Event()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append((progress, total, message))
            if progress == total:
                last.set()

        work = {"duration": 0.2, "steps": 4}
        tool = side.name("trigger-long-running-operation")
        result = await side.client.call_tool(tool, work, progress_callback=on_progress)
        await last.wait()
        return steps, result.model_dump(mode="json")

    direct, through = await peers.both("everything", talk)
    assert through == direct
    assert isinstance(direct, tuple)
    assert [progress for progress, _, _ in direct[0]] == [1, 2, 3, 4]


@pytest.mark.requirement("K-07")
async def test_a_resource_made_by_a_call_is_announced_listed_and_read(peers: Peers) -> None:
    async def talk(side: Side) -> object:
        before = await side.lists("demo:")
        data = {"name": "made.gz", "data": "data:,plait", "outputType": "resourceLink"}
        link = await side.call("gzip-file-as-resource", data)
        await side.witness.hears(CHANGED)
        after = await side.lists("demo:")
        return (
            before["resources"],
            link,
            after["resources"],
            await side.read("demo://resource/session/made.gz"),
        )

    direct, through = await peers.both("everything", talk)
    assert through == direct
    assert isinstance(direct, tuple)
    assert len(direct[2]) == len(direct[0]) + 1


async def test_log_messages_arrive_from_the_level_asked_for_and_say_whose_they_are(peers: Peers) -> None:
    uris = ("demo://resource/dynamic/text/1", "demo://resource/dynamic/text/2")

    async def talk(side: Side) -> object:
        await side.client.set_logging_level("error")
        await side.client.subscribe_resource(uris[0])
        await side.client.set_logging_level("info")
        await side.client.subscribe_resource(uris[1])
        first = await side.witness.hears("notifications/message")
        await side.client.unsubscribe_resource(uris[1])
        return first, await side.witness.hears("notifications/message")

    direct, through = await peers.both("everything", talk)
    assert isinstance(direct, tuple)
    assert "Subscribe" in direct[0]["data"]
    assert uris[1] in direct[0]["data"]
    assert through == tuple({**message, "logger": "everything"} for message in direct)


async def test_the_name_of_a_logger_is_kept_behind_the_prefix(peers: Peers) -> None:
    async def talk(side: Side) -> object:
        return await side.witness.hears("notifications/message", lambda message: "logger" in message)

    direct, through = await peers.both("everything", talk, lambda: Witness(roots=roots_in(peers.folder)))
    assert isinstance(direct, dict)
    assert through == {**direct, "logger": f"everything/{direct['logger']}"}


@pytest.mark.requirement("K-12")
async def test_updates_of_a_resource_reach_a_subscriber_until_it_unsubscribes(peers: Peers) -> None:
    def entity(name: str) -> Params:
        return {"entities": [{"name": name, "entityType": "t", "observations": []}]}

    async def talk(side: Side) -> object:
        await side.call("create_entities", entity("unwatched"))
        await side.client.subscribe_resource(GRAPH)
        await side.call("create_entities", entity("watched"))
        updated = await side.witness.hears(UPDATED)
        read = await side.read(str(updated["uri"]))
        await side.client.unsubscribe_resource(GRAPH)
        await side.call("create_entities", entity("unwatched again"))
        return updated, read, [method for method, _ in side.witness.told if method == UPDATED]

    direct, through = await peers.both("memory", talk)
    assert through == direct
    assert isinstance(direct, tuple)
    assert direct[2] == []


# ---- what servers ask


async def test_sampling_passes_both_ways(peers: Peers) -> None:
    async def talk(side: Side) -> object:
        result = await side.call("trigger-sampling-request", {"prompt": "Who? 😀", "maxTokens": 7})
        return result, side.witness.asked

    direct, through = await peers.both("everything", talk, lambda: Witness(samples=True))
    assert through == direct
    assert "Sampled" in str(direct)


FORMS = [
    types.ElicitResult(action="accept", content={"name": "Ada", "check": True, "integer": 7, "number": 1.5}),
    types.ElicitResult(action="decline"),
    types.ElicitResult(action="cancel"),
]


@pytest.mark.parametrize("form", FORMS, ids=[form.action for form in FORMS])
async def test_a_form_passes_both_ways_and_says_who_asks(peers: Peers, form: types.ElicitResult) -> None:
    async def talk(side: Side) -> object:
        result = await side.call("trigger-elicitation-request")
        ((method, asked),) = side.witness.asked
        if side.prefix:
            asked = {**asked, "message": str(asked["message"]).removeprefix("[everything] ")}
            assert asked != side.witness.asked[0][1]
        return result, method, asked

    direct, through = await peers.both("everything", talk, lambda: Witness(forms=form))
    assert through == direct


async def test_an_address_to_open_passes_as_a_question_and_as_an_error(peers: Peers) -> None:
    arguments: Params = {"url": "http://localhost/x", "message": "Open it", "elicitationId": "one"}

    async def talk(side: Side) -> object:
        refused = await side.call("trigger-url-elicitation", {**arguments, "errorPath": True})
        result = await side.call("trigger-url-elicitation", arguments)
        ((_, asked),) = side.witness.asked
        return (
            without_ids(refused),
            result,
            {**asked, "message": str(asked["message"]).removeprefix("[everything] ")},
        )

    direct, through = await peers.both(
        "everything", talk, lambda: Witness(forms=types.ElicitResult(action="accept"))
    )
    assert through == direct
    assert "-32042" in str(direct)


def without_ids(error: object) -> object:
    """The server makes up an id for each question it refers to."""
    assert isinstance(error, dict)
    for question in error["data"]["elicitations"]:
        question["elicitationId"] = "some id"
    return error


def roots_in(folder: Path) -> list[types.Root]:
    return [types.Root(uri=FileUrl(folder.as_uri()), name="all of it")]


async def test_roots_reach_the_servers_and_so_do_their_changes(peers: Peers) -> None:
    inner = peers.folder / "inner"
    inner.mkdir()

    async def talk(side: Side) -> object:
        first = await allowed(side, peers.folder)
        side.witness.roots = roots_in(inner)
        await side.client.send_roots_list_changed()
        return first, await allowed(side, inner), {method for method, _ in side.witness.asked}

    direct, through = await peers.both("filesystem", talk, lambda: Witness(roots=roots_in(peers.folder)))
    assert through == direct


async def allowed(side: Side, folder: Path) -> object:
    """What the server allows, as soon as it has asked for the roots and got this one."""
    async with asyncio.timeout(PATIENCE):
        while f"{folder}'" not in str(result := await side.call("list_allowed_directories")):
            continue
    return result


# ---- the rest

ABLE = {
    "nothing": Witness,
    "sampling": lambda: Witness(samples=True),
    "elicitation": lambda: Witness(forms=FORMS[1]),
    "roots": lambda: Witness(roots=roots_in(Path.cwd())),
    "everything": lambda: Witness(samples=True, forms=FORMS[1], roots=roots_in(Path.cwd())),
}


@pytest.mark.parametrize("able", ABLE)
@pytest.mark.requirement("X-12")
async def test_a_server_offers_what_the_client_can_use_and_no_more(peers: Peers, able: str) -> None:
    """server-everything has more tools for clients that sample, fill in forms or have roots."""

    async def talk(side: Side) -> object:
        return (await side.lists("demo:"))["tools"]

    direct, through = await peers.both("everything", talk, ABLE[able])
    assert through == direct


async def test_a_call_that_is_cancelled_leaves_the_conversation_as_it_was(peers: Peers) -> None:
    async def talk(side: Side) -> object:
        begun = asyncio.Event()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            begun.set()

        async def work() -> None:
            endless = {"duration": 600, "steps": 60_000}
            tool = side.name("trigger-long-running-operation")
            await side.client.call_tool(tool, endless, progress_callback=on_progress)

        async with asyncio.TaskGroup() as group:
            working = group.create_task(work())
            await begun.wait()
            working.cancel()
        return working.cancelled(), await side.call("echo", {"message": "still here"})

    direct, through = await peers.both("everything", talk)
    assert through == direct
    assert "still here" in str(direct)
