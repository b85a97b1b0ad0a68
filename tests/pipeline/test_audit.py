"""What is recorded of a call, and that nothing else is."""

import asyncio
import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from ledgers import records, verify
from plait.errors import UpstreamTimeout
from plait.pipeline.audit import METHODS, AuditLog, Mode
from plait.pipeline.audit_records import Intent, Outcome
from plait.pipeline.compose import Stage, arrange, compose
from plait.routing.faults import told
from plait.session.exchange import Caller, Destination, Exchange, Handler, OnProgress, Reply, Verdict, refuse
from plait.wire.address import as_raw
from plait.wire.content import error_result, text_result
from plait.wire.envelope import Fields

Message = dict[str, object]


class Client:
    """A Caller that has said who it is."""

    identity = "alice"
    revision = "2025-11-25"

    def __init__(self, name: str = "test", version: str = "1") -> None:
        self.capabilities: Fields = {}
        self.client_info = {"name": as_raw(name), "version": as_raw(version)}

    def notify(self, method: str, params: Fields | None, within: bytes | None = None) -> None:
        raise AssertionError("the audit tells clients nothing")

    async def ask(
        self,
        method: str,
        params: Fields | None,
        on_progress: OnProgress | None = None,
        within: bytes | None = None,
    ) -> Reply:
        raise AssertionError("the audit asks clients nothing")


class Place:
    """Where a request goes, as far as the audit looks at it."""

    recorded: frozenset[str] | None = None

    def __init__(self, exposed: str) -> None:
        self.exposed = exposed
        self.server, self.native_name = "fs", exposed.removeprefix("fs__")


def exchange(
    name: str = "fs__read_file",
    arguments: object = None,
    method: str = "tools/call",
    *,
    id: bytes = b"1",
    caller: Caller | None = None,
) -> Exchange:
    params = {"uri" if method == "resources/read" else "name": as_raw(name)}
    if arguments is not None:
        params["arguments"] = arguments if isinstance(arguments, Raw) else as_raw(arguments)
    return Exchange(id, method, params, name, caller or Client(), None, cast(Destination, Place(name)))


def answering(reply: Reply) -> Handler:
    async def handler(exchange: Exchange) -> Reply:
        return reply

    return handler


def saying(text: str = "hello") -> Handler:
    return answering(Reply(result=text_result(text)))


def ends(log: AuditLog) -> list[Outcome]:
    return [record for record in log.records if isinstance(record, Outcome)]


def beginnings(log: AuditLog) -> list[Intent]:
    return [record for record in log.records if isinstance(record, Intent)]


def everything(folder: Path) -> bytes:
    """All that is on the disk."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


# ---- what is recorded


@pytest.mark.requirement("S1-048", "S1-T7.12")
async def test_an_entry_has_the_tools_name_its_duration_and_how_it_ended() -> None:
    log = AuditLog()
    await log(exchange("builtin__echo", {"text": "x"}), saying())
    [before, after] = log.records
    assert isinstance(before, Intent)
    assert isinstance(after, Outcome)
    assert (before.name, before.phase, before.call) == ("builtin__echo", "intent", 1)
    assert (after.name, after.phase, after.call, after.outcome) == ("builtin__echo", "outcome", 1, "ok")
    assert after.duration_us >= 0
    assert after.mono - before.mono >= after.duration_us * 1000 - 1000


@pytest.mark.requirement("X-19")
async def test_an_entry_says_who_called_what_with_what_and_what_it_cost() -> None:
    log = AuditLog()
    arguments = {"path": "/etc/hosts", "deep": {"on": True, "list": [1, 2.5, None]}}
    await log(exchange("fs__read_file", arguments, id=b'"abc"'), saying("hello"))
    [before] = beginnings(log)
    assert before.event == "tools/call"
    assert (before.identity, before.client, before.client_version) == ("alice", "test", "1")
    assert (before.revision, before.id_type, before.server) == ("2025-11-25", "string", "fs")
    assert before.shape == {
        "path": "string",
        "deep": {"on": "boolean", "list": ["integer", "number", "null"]},
    }
    assert len(before.digest) == 32
    assert before.bytes_in == len(b'"fs__read_file"') + len(as_raw(arguments))
    assert before.ts.utcoffset() is not None
    assert ends(log)[0].bytes_out == len(text_result("hello"))
    assert ends(log)[0].server == "fs"


@pytest.mark.parametrize("method", METHODS)
async def test_whatever_makes_a_server_give_something_out_is_recorded(method: str) -> None:
    log = AuditLog()
    await log(exchange("fs__x", method=method), answering(Reply(result=Raw(b"{}"))))
    assert [record.event for record in log.records] == [method, method]
    assert [record.name for record in log.records] == ["fs__x", "fs__x"]


async def test_lists_and_the_like_are_not_recorded() -> None:
    log = AuditLog()
    reply = Reply(result=Raw(b'{"tools":[]}'))
    assert await log(exchange("", method="tools/list"), answering(reply)) is reply
    assert not log.records


@pytest.mark.requirement("BC-23")
async def test_nothing_that_passes_is_altered() -> None:
    log = AuditLog(summaries=True)
    asked = exchange("fs__x", Raw(b'{ "b":1, "b":2, "a" : 1e2 }'))
    before = dict(asked.params)
    seen: list[Exchange] = []
    reply = Reply(result=Raw(b'{ "content":[ ] ,"x":1}'))

    async def handler(exchange: Exchange) -> Reply:
        seen.append(exchange)
        return reply

    assert await log(asked, handler) is reply
    assert seen == [asked]
    assert seen[0] is asked
    assert {key: bytes(value) for key, value in asked.params.items()} == {
        key: bytes(value) for key, value in before.items()
    }


@pytest.mark.requirement("BC-23")
async def test_a_summary_of_the_arguments_is_kept_where_asked_for_and_is_short() -> None:
    log = AuditLog(summaries=True)
    await log(exchange("fs__x", {"text": "é" * 300, "password": "hunter2"}), saying())
    await log(exchange("fs__x", {"a": 1}), saying())
    long, short = beginnings(log)
    assert short.summary == '{"a":1}'
    assert long.summary.startswith('{"password":"[redacted]","text":"é')
    assert long.summary.endswith("é...")
    assert len(long.summary.encode()) <= 203
    assert long.redacted == 1
    assert AuditLog().records.maxlen == 10_000


async def test_old_records_make_room_for_new_ones() -> None:
    log = AuditLog(capacity=4)
    for call in range(5):
        await log(exchange(f"fs__{call}"), saying())
    assert [record.name for record in log.records] == ["fs__3", "fs__3", "fs__4", "fs__4"]


# ---- how calls end


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (Reply(result=text_result("x")), ("ok", 0, "", "")),
        (Reply(result=error_result("no such file")), ("tool_error", 0, "", "")),
        (told("tools/call", "fs", UpstreamTimeout("60 s")), ("tool_error", 0, "timeout", "")),
        (told("prompts/get", "fs", UpstreamTimeout("60 s")), ("error", -32603, "timeout", "")),
        (refuse(-32602, "no"), ("error", -32602, "", "")),
        (Reply(error=Raw(b'{"code":-1,"message":"x","data":[1]}')), ("error", -1, "", "")),
        (Reply(error=Raw(b'"nonsense"')), ("error", 0, "", "")),
        (Reply(result=Raw(b"[1]")), ("ok", 0, "", "")),
        (
            Reply(result=error_result("no"), verdict=Verdict("denied", "rule 2", "read-only")),
            ("denied", 0, "", "rule 2"),
        ),
        (Reply(result=text_result("x"), verdict=Verdict("allowed", "rule 1", "")), ("ok", 0, "", "rule 1")),
        (
            Reply(result=Raw(b'{"isError":true,"_meta":{"plait/fault":{"kind":"a secret of 1234"}}}')),
            ("tool_error", 0, "", ""),
        ),
        (Reply(result=Raw(b'{"isError":true,"_meta":{"plait/fault":7}}')), ("tool_error", 0, "", "")),
    ],
)
async def test_the_outcome_is_read_off_the_reply(reply: Reply, expected: tuple[str, int, str, str]) -> None:
    log = AuditLog()
    await log(exchange(), answering(reply))
    [end] = ends(log)
    assert (end.outcome, end.code, end.fault, end.rule) == expected


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        (rb'{"content":[],"isError":true}', True),
        (rb'{ "isError" : true , "content":[]}', True),
        (rb'{"\u0069sError":true}', True),
        (rb'{"isError":false}', False),
        (rb'{"isError":"true"}', False),
        (rb'{"isError":1}', False),
        (rb'{"isError":null}', False),
        (rb'{"iserror":true}', False),
        (rb'{"structuredContent":{"isError":true}}', False),
        (rb'{"content":[{"type":"text","text":"\"isError\":true"}]}', False),
        (rb'{"isError":true,"isError":false}', False),
        (b"{}", False),
    ],
)
async def test_a_failed_tool_is_told_from_one_that_talks_about_failures(result: bytes, failed: bool) -> None:
    log = AuditLog()
    await log(exchange(), answering(Reply(result=Raw(result))))
    assert ends(log)[0].outcome == ("tool_error" if failed else "ok")


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8) | st.just("isError"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["isError", "content", "_meta", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["isError", "content", "_meta", "é"]), plain), st.booleans())
def test_whatever_the_result_holds_only_its_own_flag_counts(result: Message, ascii_only: bool) -> None:
    log = AuditLog()
    reply = Reply(result=Raw(json.dumps(result, ensure_ascii=ascii_only).encode()))
    asyncio.run(log(exchange(), answering(reply)))
    assert ends(log)[0].outcome == ("tool_error" if result.get("isError") is True else "ok")


async def test_a_cancelled_call_is_recorded_as_that() -> None:
    log = AuditLog()
    reached = asyncio.Event()

    async def waiting(exchange: Exchange) -> Reply:
        reached.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        call = group.create_task(log(exchange(), waiting))
        await reached.wait()
        call.cancel()
    assert [end.outcome for end in ends(log)] == ["cancelled"]


async def test_a_bug_further_in_is_recorded_and_goes_on() -> None:
    log = AuditLog()

    async def broken(exchange: Exchange) -> Reply:
        raise ZeroDivisionError("the secret is 1234")

    with pytest.raises(ZeroDivisionError):
        await log(exchange(), broken)
    [end] = ends(log)
    assert (end.outcome, end.fault) == ("error", "ZeroDivisionError")


@pytest.mark.requirement("K-08")
async def test_a_denied_call_is_recorded_with_the_rule_and_a_duration_and_without_its_arguments(
    tmp_path: Path,
) -> None:
    async def guard(exchange: Exchange, call_next: Handler) -> Reply:
        verdict = Verdict("denied", "rule 3", "argument path=/home/hidden is outside")
        return Reply(result=error_result("denied[P001]: …"), verdict=verdict)

    async def unreachable(exchange: Exchange) -> Reply:
        raise AssertionError

    log = AuditLog(tmp_path)
    layers = arrange([guard, log])
    assert layers[0] is log, "outermost, whatever order they are given in"
    await compose(layers, unreachable)(exchange("fs__write_file", {"path": "/home/hidden"}))
    await log.aclose()
    [before, after] = records(tmp_path)[1:3]
    assert (before["phase"], before["name"]) == ("intent", "fs__write_file")
    assert (after["outcome"], after["decision"], after["rule"]) == ("denied", "denied", "rule 3")
    assert isinstance(after["duration_us"], int)
    assert b"hidden" not in everything(tmp_path)


def test_it_stands_outermost() -> None:
    assert AuditLog.stage is Stage.AUDIT


# ---- arguments


async def shapes_of(*arguments: object, **options: Callable[[str], set[str]]) -> list[Intent]:
    log = AuditLog(secret_parameters=options.get("secret_parameters"))
    for each in arguments:
        await log(exchange("fs__x", each), saying())
    return beginnings(log)


async def test_the_digest_is_the_same_for_the_same_arguments_however_they_are_written() -> None:
    [first, second, third] = await shapes_of(
        Raw(b'{"a":1,"b":{"x":1,"y":2}}'),
        Raw(b'{ "b" : {"y":2,"x":1}, "\\u0061":1 }'),
        Raw(b'{"a":2,"b":{"x":1,"y":2}}'),
    )
    assert first.digest == second.digest != third.digest
    assert first.shape == second.shape


async def test_the_digest_is_keyed() -> None:
    [one], [other] = await shapes_of({"a": 1}), await shapes_of({"a": 1})
    assert one.digest != other.digest


async def test_secret_values_make_no_difference_to_the_digest_and_have_no_type() -> None:
    secret: Callable[[str], set[str]] = lambda tool: {"door"} if tool == "fs__x" else set()  # noqa: E731
    [first, second, third] = await shapes_of(
        {"pin": 1234, "door": "a", "a": 1},
        {"pin": "4321", "door": "b", "a": 1},
        {"pin": "4321", "door": "b", "a": 2},
        secret_parameters=secret,
    )
    assert first.digest == second.digest != third.digest
    assert first.shape == {"pin": "secret", "door": "secret", "a": "integer"}
    assert first.redacted == 2


@pytest.mark.parametrize(
    ("arguments", "shape", "form"),
    [
        (Raw(b"{}"), {}, ""),
        (Raw(b'[1,2,"x",{}]'), ["integer", "string", {}], ""),
        (Raw(b"null"), "null", ""),
        (Raw(b'"x"'), "string", ""),
        (Raw(b'{"x":"' + b"y" * 20_000 + b'"}'), "large", "raw"),
        (Raw(b'{"x":' + b"[" * 3000 + b"]" * 3000 + b"}"), "unreadable", "raw"),
        (Raw(b'{"x":"\xff"}'), "unreadable", "raw"),
        (as_raw({"a": {"b": {"c": {"d": {"e": {"f": 1}}}}}}), {"a": {"b": {"c": {"d": "object"}}}}, ""),
        (as_raw({"a": [[[[[1]]]]]}), {"a": [[["array"]]]}, ""),
        (as_raw({"a": {"b": {"c": {"d": {"password": 1}}}}}), {"a": {"b": {"c": {"d": "object"}}}}, ""),
    ],
)
async def test_arguments_of_every_kind_have_a_shape(arguments: Raw, shape: object, form: str) -> None:
    [before] = await shapes_of(arguments)
    assert (before.shape, before.digest_of) == (shape, form)
    assert before.digest


async def test_a_shape_is_never_large() -> None:
    [before] = await shapes_of({f"key{number}": number for number in range(1000)})
    assert isinstance(before.shape, dict)
    assert len(before.shape) == 41
    assert before.shape["…"] == 960


# ---- files


@pytest.mark.parametrize("mode", ["best_effort", "strict"])
async def test_the_intent_is_in_the_file_before_the_call_goes_on(tmp_path: Path, mode: Mode) -> None:
    log = AuditLog(tmp_path, mode)
    seen: list[Message] = []

    async def looking(exchange: Exchange) -> Reply:
        seen.extend(records(tmp_path))
        return Reply(result=text_result("x"))

    async with asyncio.timeout(30):
        await log(exchange(), looking)
        await log.aclose()
    assert [record.get("phase") for record in seen] == [None, "intent"]
    assert [record.get("phase") for record in records(tmp_path)] == [None, "intent", "outcome", None]
    assert verify(tmp_path).problems == []


@pytest.mark.parametrize("mode", ["best_effort", "strict"])
async def test_many_calls_at_once_are_all_there(tmp_path: Path, mode: Mode) -> None:
    log = AuditLog(tmp_path, mode, segment_bytes=20_000)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for call in range(300):
            group.create_task(log(exchange(f"fs__{call}"), saying()))
    await log.aclose()
    [stream] = verify(tmp_path).streams
    assert (stream.calls, stream.open, stream.problem) == (300, [], None)


async def test_what_comes_after_the_end_begins_another_stream(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    for _ in range(2):
        await log(exchange(), saying())
        await log.aclose()
    assert [stream.state for stream in verify(tmp_path).streams] == ["closed", "closed"]


class Disk:
    """A disk that is full when told so."""

    full = False

    def __call__(self, descriptor: int, data: bytes) -> int:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.write(descriptor, data)


async def test_strict_refuses_what_it_cannot_record_and_goes_on_when_it_can(tmp_path: Path) -> None:
    disk = Disk()
    log = AuditLog(tmp_path, "strict", write=disk)
    called: list[str] = []

    async def handler(exchange: Exchange) -> Reply:
        called.append(exchange.address)
        return Reply(result=text_result("x"))

    async with asyncio.timeout(30):
        await log(exchange("fs__1"), handler)
        disk.full = True
        refused = await log(exchange("fs__2"), handler)
        prompt = await log(exchange("fs__3", method="prompts/get"), handler)
        disk.full = False
        await log(exchange("fs__4"), handler)
        await log.aclose()
    assert called == ["fs__1", "fs__4"]
    assert refused.result is not None
    told = json.loads(bytes(refused.result))
    assert told["isError"] is True
    assert "denied[A001]: fs__2 was not called" in told["content"][0]["text"]
    assert "No space left on device" in told["content"][0]["text"]
    assert prompt.error is not None
    assert b"was not called" in bytes(prompt.error)
    [stream] = verify(tmp_path).streams
    assert (stream.lost, stream.calls, stream.problem) == (2, 2, None)


async def test_strict_makes_no_call_whose_record_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    log = AuditLog(folder, "strict")
    called: list[str] = []

    async def handler(exchange: Exchange) -> Reply:
        called.append(exchange.address)
        return Reply(result=text_result("x"))

    async with asyncio.timeout(30):
        await log(exchange("fs__1"), handler)
        for path in folder.iterdir():
            path.unlink()
        replies = [await log(exchange(f"fs__{number}"), handler) for number in range(2, 5)]
        await log.aclose()
    recorded = {record.get("name") for record in records(folder)}
    assert recorded >= set(called[1:])
    assert called[-1] == "fs__4", "another file is begun"
    for reply in replies[: 4 - len(called)]:
        assert reply.verdict is not None
        assert (reply.verdict.decision, reply.verdict.rule) == ("denied", "audit")


async def test_best_effort_goes_on_and_records_the_gap(tmp_path: Path) -> None:
    disk = Disk()
    log = AuditLog(tmp_path, write=disk)
    disk.full = True
    for call in range(3):
        reply = await log(exchange(f"fs__{call}"), saying("served"))
        assert reply.result == text_result("served")
    disk.full = False
    await log(exchange("fs__9"), saying())
    await log.aclose()
    assert [record.get("lost") for record in records(tmp_path)] == [None, 6, None, None, None]
    assert verify(tmp_path).streams[0].lost == 6


async def test_a_call_that_was_made_is_answered_even_if_its_outcome_cannot_be_recorded(
    tmp_path: Path,
) -> None:
    disk = Disk()
    log = AuditLog(tmp_path, "strict", write=disk)

    async def handler(exchange: Exchange) -> Reply:
        disk.full = True
        return Reply(result=text_result("done"))

    async with asyncio.timeout(30):
        reply = await log(exchange("fs__1"), handler)
        await log.aclose()
    assert reply.result == text_result("done")
    [stream] = verify(tmp_path).streams
    assert [call.name for call in stream.open] == ["fs__1"], "which is unknown, and is said to be"


@pytest.mark.parametrize("mode", ["best_effort", "strict"])
async def test_a_folder_that_cannot_be_used_is_no_exception(tmp_path: Path, mode: Mode) -> None:
    (tmp_path / "file").write_text("")
    log = AuditLog(tmp_path / "file" / "audit", mode)
    reply = await log(exchange(arguments={"a": 1}), saying("served"))
    assert (reply.result == text_result("served")) is (mode == "best_effort")
    await log.aclose()


async def test_a_name_that_is_no_text_is_no_exception(tmp_path: Path) -> None:
    log = AuditLog(tmp_path)
    asked = exchange()
    asked.address = "\ud800"
    reply = await log(asked, saying("served"))
    assert reply.result == text_result("served")
    await log.aclose()
    assert verify(tmp_path).problems == []


# ---- secrets

CANARIES = ("hunter2hunter2", "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a", "correct-horse-battery")


@pytest.mark.requirement("K-08")
@pytest.mark.parametrize("summaries", [False, True])
async def test_no_secret_is_stored_wherever_it_comes_from(tmp_path: Path, summaries: bool) -> None:
    plain_word, token, door = CANARIES
    client = Client(name=f"client {token}", version=token)
    log = AuditLog(tmp_path, summaries=summaries, secret_parameters=lambda tool: {"door"})
    verdict = Verdict("denied", "rule 1", f"argument {token}")
    arguments = {
        "password": plain_word,
        "door": door,
        "text": f"please use {token} to sign in",
        "headers": {"Authorization": f"Bearer {token}", "X-Api-Key": [plain_word]},
        "nested": [{"credentials": {"user": "u", "pass": door}}],
        token: 1,
    }
    await log(exchange("fs__x", arguments, caller=client), saying(f"the answer is {token} {plain_word}"))
    await log(exchange("fs__x", arguments), answering(Reply(result=error_result(token), verdict=verdict)))
    await log(exchange("fs__x", arguments), answering(refuse(-32000, token, {"kind": token})))
    uri = f"https://user:{plain_word}@example.org/{token}?key={door}#{token}"
    await log(exchange(uri, method="resources/read"), answering(Reply(result=Raw(b"{}"))))
    await log.aclose()
    stored = everything(tmp_path)
    for canary in CANARIES:
        assert canary.encode() not in stored
    assert b"example.org" in stored
    assert b'"password":"secret"' in stored


async def test_names_of_tools_are_never_taken_for_secrets(tmp_path: Path) -> None:
    name = "fs__aB3dE6gH9jK2mN5pQ8sT1vW4yZ7_3f9a2c"
    log = AuditLog(tmp_path)
    await log(exchange(name), saying())
    await log.aclose()
    assert [record.get("name") for record in records(tmp_path)] == [None, name, name, None]
