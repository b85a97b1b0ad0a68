"""Clients and servers of both eras, in all four combinations, through one compositor."""

import asyncio

import pytest

from clients import Client, compositor, error_of, result_of
from clock import jumping, quiet
from fakes import FakeServer, Held, Message, Refusal, words
from modern_fakes import REVISION, ModernClient, ModernServer
from plait.errors import UpstreamRefused
from plait.wire.modern import CAPABILITIES_KEY, CLIENT_KEY, LEVEL_KEY, VERSION_KEY

P = "io.modelcontextprotocol/"
REFERENCE: Message = {"type": "ref/prompt", "name": "s__ask"}
ARGUMENT: Message = {"name": "n", "value": ""}


def server(era: str, **more: object) -> FakeServer:
    kind = ModernServer if era == "modern" else FakeServer
    made = kind("s", tools=["t"], prompts=["ask"], resources=["x:1"], **more)  # type: ignore[arg-type]
    if era == "handshake":
        made.capabilities = {"tools": {}, "prompts": {}, "resources": {"subscribe": True}, "completions": {}}
        made.answers["completion/complete"] = lambda params: {"completion": {"values": ["one"]}}
    return made


PLAIN: list[tuple[str, Message]] = [
    ("tools/list", {}),
    ("tools/call", {"name": "s__t", "arguments": {"a": 1}}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "s__ask"}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "x:1"}),
    ("completion/complete", {"ref": REFERENCE, "argument": ARGUMENT}),
]
MODERN_ONLY = ("resultType", "ttlMs", "cacheScope", "_meta")


@jumping
async def test_plain_requests_have_the_same_answers_in_all_four_combinations() -> None:
    answers: list[list[Message]] = []
    for era in ("handshake", "modern"):
        async with compositor(server(era)) as made, Client(made) as old, ModernClient(made) as new:
            answers.append([await old.send(method, **params) for method, params in PLAIN])
            modern = [
                result_of(await new.send(method, number, **params))
                for number, (method, params) in enumerate(PLAIN)
            ]
        assert all(result["resultType"] == "complete" for result in modern)
        assert all(list(result["_meta"]) == [f"{P}serverInfo"] for result in modern)  # type: ignore[call-overload]
        assert [result.get("ttlMs") for result in modern] == [0, None, 0, None, 0, 0, 0, None]
        answers.append(
            [{key: value for key, value in result.items() if key not in MODERN_ONLY} for result in modern]
        )
    first = answers[0]
    assert first[0] == {"tools": [{"name": "s__t", "inputSchema": {"type": "object"}}]}
    assert words(first[1]) == 's: t {"a":1}'
    assert answers[1:] == [first, first, first]


@jumping
async def test_the_stamp_of_one_hop_is_not_seen_on_the_next() -> None:
    old, new = FakeServer("old", tools=["t"]), ModernServer("new", tools=["t"])
    able: Message = {"elicitation": {"form": {}}, "tasks": {}}
    async with compositor(old, new) as made, ModernClient(made) as client:
        for number, name in enumerate(("old__t", "new__t")):
            await client.send(
                "tools/call",
                number,
                name=name,
                arguments={},
                meta={"vendor/x": 1, "traceparent": "00"},
                capabilities=able,
                level="error",
            )
    [seen] = old.asked("tools/call")
    assert seen["_meta"] == {"vendor/x": 1, "traceparent": "00"}
    [seen] = new.asked("tools/call")
    meta = seen["_meta"]
    assert isinstance(meta, dict)
    assert meta.pop(CLIENT_KEY)["name"] == "plait"
    assert meta == {
        VERSION_KEY: REVISION,
        CAPABILITIES_KEY: {"elicitation": {"form": {}}},
        LEVEL_KEY: "error",
        "vendor/x": 1,
        "traceparent": "00",
    }


@jumping
async def test_progress_crosses_the_eras() -> None:
    for era in ("handshake", "modern"):
        held, behind = Held(), server(era)
        behind.answers["tools/call"] = lambda params, held=held: held  # type: ignore[misc]
        async with compositor(behind) as made, Client(made) as old, ModernClient(made) as new:
            new.request("tools/call", 1, name="s__t", arguments={}, meta={"progressToken": "mine"})
            await quiet()
            [asked] = behind.asked("tools/call")
            token = asked["_meta"]["progressToken"]  # type: ignore[index]
            assert token != "mine"
            behind.notify("notifications/progress", {"progressToken": token, "progress": 1})
            await quiet()
            [told] = new.told("notifications/progress")
            assert told["params"] == {"progressToken": "mine", "progress": 1}
            held.answer({"content": []})
            await new.answered()
            assert old.told("notifications/progress") == []


@jumping
async def test_what_is_cancelled_is_cancelled_at_the_server_and_not_answered() -> None:
    for era in ("handshake", "modern"):
        behind = server(era)
        behind.answers["tools/call"] = lambda params: Held()
        async with compositor(behind) as made, ModernClient(made) as client:
            client.request("tools/call", "c", name="s__t", arguments={})
            await quiet()
            client.say("notifications/cancelled", requestId="c")
            await client.answered()
            await quiet()
            assert len(behind.told("notifications/cancelled")) == 1
            assert [message for message in client.messages if message.get("id") == "c"] == []


@jumping
async def test_errors_are_told_in_the_era_of_whoever_asked() -> None:
    for era in ("handshake", "modern"):
        behind = server(era)
        behind.answers["resources/read"] = lambda params: Refusal(-32002, "Resource not found")
        behind.answers["prompts/get"] = lambda params: Refusal(-32001, "an SDK's own")
        async with compositor(behind) as made, Client(made) as old, ModernClient(made) as new:
            assert error_of(await new.send("resources/read", 1, uri="x:1"))["code"] == -32602
            error = error_of(await new.send("prompts/get", 2, name="s__ask"))
            assert (error["code"], error["data"]) == (-32603, {"upstream": -32001})
            with pytest.raises(UpstreamRefused, match="-32002"):
                await old.send("resources/read", uri="x:1")
            with pytest.raises(UpstreamRefused, match="-32001"):
                await old.send("prompts/get", name="s__ask")


# ---- what does not cross yet


@jumping
async def test_a_modern_servers_question_fails_a_handshake_clients_call_at_once() -> None:
    behind = server("modern")
    question = {"resultType": "input_required", "requestState": "s"}
    for method in ("tools/call", "prompts/get", "resources/read"):
        behind.answers[method] = lambda params: question
    async with compositor(behind) as made, Client(made, {"elicitation": {}}) as client:
        failed = await client.call("s__t")
        assert failed["isError"] is True
        assert "in the middle of tools/call" in words(failed)
        for method, params in (("prompts/get", {"name": "s__ask"}), ("resources/read", {"uri": "x:1"})):
            with pytest.raises(UpstreamRefused, match="cannot put such a question"):
                await client.send(method, **params)
    [seen] = behind.asked("tools/call")
    assert seen["_meta"][CAPABILITIES_KEY] == {}  # type: ignore[index]


@jumping
async def test_a_handshake_servers_question_during_a_modern_call_is_refused_at_once() -> None:
    held, behind = Held(), server("handshake")
    behind.answers["tools/call"] = lambda params: held
    async with compositor(behind) as made, ModernClient(made) as client:
        client.request("tools/call", name="s__t", arguments={}, capabilities={"sampling": {}})
        await quiet()
        behind.ask("q", "sampling/createMessage", {"messages": []})
        await quiet()
        assert "input_required" in str(behind.wire.replies["q"]["error"])
        held.answer({"content": []})
        await client.answered()
    [hello] = behind.asked("initialize")
    assert hello["capabilities"] == {}
    assert hello["protocolVersion"] == "2025-11-25"


@jumping
async def test_a_result_of_an_unknown_type_is_none() -> None:
    behind = server("modern")
    behind.answers["tools/call"] = lambda params: {"resultType": "task", "taskId": "1"}
    async with compositor(behind) as made, Client(made) as old, ModernClient(made) as new:
        assert "resultType 'task'" in words(await old.call("s__t"))
        assert "resultType 'task'" in words(result_of(await new.send("tools/call", name="s__t")))


# ---- logging


@jumping
async def test_a_log_message_goes_to_the_one_modern_request_it_belongs_to() -> None:
    held, behind = Held(), server("handshake")
    behind.answers["tools/call"] = lambda params: held
    async with compositor(behind, shared=True) as made, Client(made) as old, ModernClient(made) as new:
        new.request("tools/call", name="s__t", arguments={}, level="warning")
        await quiet()
        behind.notify("notifications/message", {"level": "error", "data": 1})
        behind.notify("notifications/message", {"level": "info", "data": 2})
        await quiet()
        held.answer({"content": []})
        await new.answered()
        behind.notify("notifications/message", {"level": "error", "data": 3})
        await quiet()
        [told] = new.told("notifications/message")
        assert told["params"] == {"level": "error", "data": 1, "logger": "s"}
        assert [note["data"] for note in old.told("notifications/message")] == [3]


@jumping
async def test_a_handshake_clients_level_goes_with_its_requests_to_a_modern_server() -> None:
    behind = server("modern")
    async with compositor(behind) as made, Client(made) as client:
        await client.call("s__t")
        await client.send("logging/setLevel", level="error")
        await quiet()
        await client.call("s__t")
        first, second = behind.asked("tools/call")
        assert LEVEL_KEY not in first["_meta"]  # type: ignore[operator]
        assert second["_meta"][LEVEL_KEY] == "error"  # type: ignore[index]
        assert behind.asked("logging/setLevel") == []


# ---- lists


@jumping
async def test_a_list_holds_as_long_as_the_first_server_to_go_stale() -> None:
    def listing(milliseconds: int, scope: str) -> Message:
        return {"tools": [], "ttlMs": milliseconds, "cacheScope": scope}

    long, short, old = ModernServer("a"), ModernServer("b"), FakeServer("c", tools=["t"])
    long.answers["tools/list"] = lambda params: listing(90_000, "public")
    short.answers["tools/list"] = lambda params: listing(20_000, "public")
    async with compositor(long, short) as made, ModernClient(made) as client:
        first = result_of(await client.send("tools/list", 1))
        assert (first["ttlMs"], first["cacheScope"]) == (20_000, "public")
        await asyncio.sleep(15)
        assert result_of(await client.send("tools/list", 2))["ttlMs"] == 5_000
        await asyncio.sleep(15)
        assert result_of(await client.send("tools/list", 3))["ttlMs"] == 0
        await asyncio.sleep(1)  # meanwhile it was read again
        assert 18_000 < int(str(result_of(await client.send("tools/list", 4))["ttlMs"])) <= 20_000
    async with compositor(long, old) as made, ModernClient(made) as client:
        mixed = result_of(await client.send("tools/list", 1))
        assert (mixed["ttlMs"], mixed["cacheScope"]) == (0, "private")


@jumping
async def test_each_era_gets_the_tools_it_can_take() -> None:
    array: Message = {
        "name": "n",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "array"},
        "odd": 1,
    }
    tasks: Message = {
        "name": "k",
        "inputSchema": {"type": "object"},
        "execution": {"taskSupport": "optional"},
    }
    behind = ModernServer("s", tools=[array, tasks])
    behind.answers["tools/call"] = lambda params: {"content": [], "structuredContent": [1]}
    async with compositor(behind) as made, Client(made) as old, ModernClient(made) as new:
        for_old = (await old.send("tools/list"))["tools"]
        for_new = result_of(await new.send("tools/list", 1))["tools"]
        assert for_old == [
            {
                **array,
                "name": "s__n",
                "outputSchema": {
                    "type": "object",
                    "properties": {"result": {"type": "array"}},
                    "required": ["result"],
                },
            },
            {**tasks, "name": "s__k"},
        ]
        assert for_new == [{**array, "name": "s__n"}, {"name": "s__k", "inputSchema": {"type": "object"}}]
        assert (await old.call("s__n"))["structuredContent"] == {"result": [1]}
        called = result_of(await new.send("tools/call", 2, name="s__n"))
        assert called["structuredContent"] == [1]
