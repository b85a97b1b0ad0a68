"""Five servers that people use, behind one plait, answer the official client as they do directly."""

import json
import re
from pathlib import Path

import mcp_types as types
import pytest

from peers import SERVERS, Peers, Talk
from witness import Params, Side, Witness

pytestmark = pytest.mark.e2e


@pytest.fixture
def peers(tmp_path: Path) -> Peers:
    return Peers(tmp_path)


def timeless(observed: object) -> object:
    """Without the time of day that server-everything puts into its texts."""
    return json.loads(re.sub(r"created at [0-9: APM\u202f\\]+", "created just now", json.dumps(observed)))


# ---- conversations: what is asked of each server


def talk_to_everything(peers: Peers) -> Talk:
    data = "data:text/plain;base64,cGxhaXQ="
    calls: list[tuple[str, Params]] = [
        ("echo", {"message": 'thré 😀 \u2028 \\ "'}),
        ("get-sum", {"a": 0.1, "b": 12345678901234567890}),
        ("get-structured-content", {"location": "Chicago"}),
        ("get-tiny-image", {}),
        ("get-annotated-message", {"messageType": "error", "includeImage": True}),
        ("get-resource-links", {"count": 4}),
        ("get-resource-reference", {"resourceType": "Text", "resourceId": 3}),
        ("gzip-file-as-resource", {"name": "a.gz", "data": data, "outputType": "resource"}),
        ("get-sum", {"a": "no number"}),
        ("echo", {}),
        ("get-structured-content", {"location": "Atlantis"}),
    ]
    prompts: list[tuple[str, dict[str, str]]] = [
        ("simple-prompt", {}),
        ("args-prompt", {"city": "Köln", "state": "NRW"}),
        ("args-prompt", {}),
        ("completable-prompt", {"department": "Sales", "name": "Eve"}),
        ("resource-prompt", {"resourceType": "Text", "resourceId": "2"}),
        ("resource-prompt", {"resourceType": "None", "resourceId": "2"}),
    ]
    uris = ["static/document/features.md", "dynamic/text/1", "dynamic/text/none"]

    async def talk(side: Side) -> object:
        return {
            **await side.lists("demo:"),
            "called": [[tool, await side.call(tool, arguments)] for tool, arguments in calls],
            "prompted": [[name, await side.prompt(name, arguments)] for name, arguments in prompts],
            "read": [[uri, await side.read(f"demo://resource/{uri}")] for uri in uris],
            "completed": await completions(side),
        }

    return talk


async def completions(side: Side) -> list[Params]:
    team = types.PromptReference(name=side.name("completable-prompt"))
    template = types.ResourceTemplateReference(uri="demo://resource/dynamic/text/{resourceId}")
    asked: list[tuple[types.PromptReference | types.ResourceTemplateReference, str, str, dict[str, str]]] = [
        (team, "department", "S", {}),
        (team, "name", "", {"department": "Sales"}),
        (template, "resourceId", "12", {}),
        (template, "resourceId", "x", {}),
    ]
    return [
        (await side.client.complete(ref, {"name": name, "value": value}, context)).model_dump(mode="json")
        for ref, name, value, context in asked
    ]


def calling(calls: list[tuple[str, Params]], uri: str = "none:") -> Talk:
    async def talk(side: Side) -> object:
        called = [[tool, await side.call(tool, arguments)] for tool, arguments in calls]
        read = await side.read(uri) if uri != "none:" else None
        return {**await side.lists(uri), "called": called, "read": read}

    return talk


def talk_to_filesystem(peers: Peers) -> Talk:
    note, still = str(peers.still / "note.txt"), str(peers.still)
    return calling(
        [
            ("read_text_file", {"path": note}),
            ("read_text_file", {"path": note, "head": 1}),
            ("read_media_file", {"path": str(peers.still / "dot.png")}),
            ("read_multiple_files", {"paths": [note, str(peers.still / "missing")]}),
            ("edit_file", {"path": note, "edits": [{"oldText": "two", "newText": "2"}], "dryRun": True}),
            ("write_file", {"path": str(peers.files / "new.txt"), "content": "é\r\n\u2028"}),
            ("list_directory", {"path": still}),
            ("directory_tree", {"path": still}),
            ("list_allowed_directories", {}),
            ("read_text_file", {"path": "/"}),
            ("read_text_file", {}),
        ]
    )


def talk_to_memory(peers: Peers) -> Talk:
    ada = {"name": "Ada", "entityType": "person", "observations": ["first"]}
    return calling(
        [
            ("create_entities", {"entities": [ada, {**ada, "name": "Bob"}]}),
            ("create_relations", {"relations": [{"from": "Ada", "to": "Bob", "relationType": "knows"}]}),
            ("add_observations", {"observations": [{"entityName": "Ada", "contents": ["second"]}]}),
            ("add_observations", {"observations": [{"entityName": "Nobody", "contents": ["x"]}]}),
            ("search_nodes", {"query": "ada"}),
            ("delete_entities", {"entityNames": ["Bob"]}),
            ("read_graph", {}),
        ],
        "memory://knowledge-graph",
    )


def talk_to_time(peers: Peers) -> Talk:
    berlin = {"source_timezone": "Europe/Berlin", "time": "16:30"}
    return calling(
        [
            ("convert_time", {**berlin, "target_timezone": "Asia/Kathmandu"}),
            ("convert_time", {**berlin, "target_timezone": "Nowhere/Land"}),
            ("convert_time", {"time": 5}),
            ("get_current_time", {"timezone": ""}),
        ]
    )


def talk_to_git(peers: Peers) -> Talk:
    where: Params = {"repo_path": str(peers.folder / "repository")}
    return calling(
        [
            ("git_status", where),
            ("git_log", where),
            ("git_diff_unstaged", where),
            ("git_show", {**where, "revision": "HEAD"}),
            ("git_show", {**where, "revision": "no-such-thing"}),
            ("git_status", {"repo_path": str(peers.folder)}),
            ("git_log", {}),
        ]
    )


TALKS = {
    "everything": talk_to_everything,
    "filesystem": talk_to_filesystem,
    "memory": talk_to_memory,
    "time": talk_to_time,
    "git": talk_to_git,
}


@pytest.mark.requirement("S1-AC9", "S1-R1", "S1-014")
async def test_five_real_servers_behind_one_plait_answer_as_they_do_directly(peers: Peers) -> None:
    talks = {name: TALKS[name](peers) for name in SERVERS}
    direct, through = await peers.all(talks)
    for name in SERVERS:
        mine, theirs = timeless(through[name]), timeless(direct[name])
        assert isinstance(mine, dict)
        assert isinstance(theirs, dict)
        for part in theirs:
            assert mine[part] == theirs[part], f"{part} of {name}"


@pytest.mark.requirement("S1-E10")
async def test_the_same_server_twice_is_two_servers(peers: Peers) -> None:
    ada: Params = {"entities": [{"name": "Ada", "entityType": "person", "observations": []}]}
    entries = {name: peers.entry("memory", name) for name in ("first", "second")}
    async with peers.plait(entries, Witness()) as client:
        first, second = (Side(client, Witness(), name) for name in entries)
        assert (await first.lists("none:"))["tools"] == (await second.lists("none:"))["tools"] != []
        await first.call("create_entities", ada)
        graphs = [await side.call("read_graph") for side in (first, second)]
    assert ["Ada" in str(graph) for graph in graphs] == [True, False]
