import asyncio
import base64
import json
import tracemalloc
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct

from fakes import Message
from plait.pipeline.compose import Stage
from plait.pipeline.kept import KeptResults
from plait.pipeline.limits import MAX_TOOL_RESULT_BYTES, ResultGuard
from plait.pipeline.sanitising import count_unseen, harmless, neutralise
from plait.session.exchange import Exchange, Reply, Verdict
from plait.wire.address import as_raw
from plait.wire.content import error_result, text_result
from plait.wire.envelope import open_fields
from seams import FakeCaller, error_of, result_of

MARK = "\n[truncated]"


class Place(Struct, frozen=True):
    """Where a call goes, as far as the guard looks."""

    server: str
    exposed: str = "fs__read"
    native_name: str = "read"
    output_schema: Raw | None = None
    recorded: frozenset[str] | None = None

    def declared(self) -> dict[str, str]:
        return {}


async def through(
    guard: ResultGuard,
    reply: Reply | object,
    *,
    caller: FakeCaller | None = None,
    method: str = "tools/call",
    name: str = "fs__read",
    server: str | None = None,
) -> Reply:
    """The reply to a call whose tool gave this one."""
    given = reply if isinstance(reply, Reply) else Reply(result=as_raw(reply))

    async def handler(exchange: Exchange) -> Reply:
        return given

    exchange = (caller or FakeCaller()).exchange(method, name=name, uri=name)
    exchange.destination = None if server is None else Place(server)
    return await guard(exchange, handler)


async def guarded(guard: ResultGuard, result: object, **how: object) -> Message:
    return result_of(await through(guard, result, **how))  # type: ignore[arg-type]


def text(words: str) -> Message:
    return {"type": "text", "text": words}


def content(result: Mapping[str, object]) -> list[Message]:
    blocks = result["content"]
    assert isinstance(blocks, list)
    return blocks


# ---- the budget


@pytest.mark.requirement("S1-T7.11", "BC-22", "X-17")
async def test_five_hundred_bytes_with_a_limit_of_a_hundred_are_a_hundred_and_the_mark() -> None:
    result = await guarded(ResultGuard(100), {"content": [text("x" * 500)]})
    assert content(result) == [text("x" * 100 + MARK)]
    assert result["_meta"] == {"plait/truncated": {"original_bytes": 500, "kept_bytes": 100}}


@pytest.mark.requirement("S1-024", "S1-AC17", "BC-22")
async def test_by_default_a_result_has_65536_bytes() -> None:
    assert MAX_TOOL_RESULT_BYTES == 65_536
    fits = Reply(result=text_result("x" * 65_536))
    assert await through(ResultGuard(), fits) is fits
    result = await guarded(ResultGuard(), {"content": [text("x" * 65_537)]})
    assert content(result) == [text("x" * 65_536 + MARK)]


@pytest.mark.requirement("BC-22")
async def test_it_cuts_between_characters() -> None:
    result = await guarded(ResultGuard(10), {"content": [text("日本語テキスト")]})
    assert content(result) == [text("日本語" + MARK)]


async def test_a_tool_may_have_a_limit_of_its_own() -> None:
    guard = ResultGuard(100, per_tool={"fs__read": 200})
    assert content(await guarded(guard, {"content": [text("x" * 300)]})) == [text("x" * 200 + MARK)]
    other = await guarded(guard, {"content": [text("x" * 300)]}, name="fs__list")
    assert content(other) == [text("x" * 100 + MARK)]


@pytest.mark.requirement("K-09", "BC-22")
async def test_errors_are_cut_and_cleaned_too_and_stay_errors() -> None:
    reply = await through(ResultGuard(100), Reply(result=error_result("\x1b[31m" + "x" * 500)))
    result = result_of(reply)
    assert content(result) == [text("x" * 100 + MARK)]
    assert result["isError"] is True


@pytest.mark.requirement("K-09")
async def test_a_json_rpc_error_has_the_same_budget() -> None:
    error = {"code": -32000, "message": "\x1b[31m" + "x" * 500, "data": ["y" * 500], "extra": 1}
    told = error_of(await through(ResultGuard(100), Reply(error=as_raw(error))))
    assert told == {"code": -32000, "message": "x" * 100 + MARK, "extra": 1}
    small = Reply(error=as_raw({"code": -32000, "message": "no", "data": {"k": "v"}}))
    assert await through(ResultGuard(100), small) is small
    plain = Reply(error=as_raw({"code": 1, "message": "no", "data": "\u200b"}))
    assert (await through(ResultGuard(100), plain)).error == plain.error
    odd = Reply(error=as_raw(["x" * 500]))
    assert (await through(ResultGuard(100), odd)).error == odd.error


@pytest.mark.requirement("BC-37", "K-21")
async def test_structured_content_is_never_half_there_and_sizes_are_bytes() -> None:
    structured = {"items": ["é" * 10] * 50}
    result = await guarded(ResultGuard(100), {"content": [text("fine")], "structuredContent": structured})
    size = len(as_raw(structured))
    assert result == {
        "content": [text("fine")],
        "_meta": {"plait/truncated": {"original_bytes": size + 4, "kept_bytes": 4}},
    }


async def test_where_the_schema_is_known_structured_content_is_shortened_to_fit_it() -> None:
    schema = as_raw({"type": "object", "required": ["result"]})
    guard = ResultGuard(1000, schema_of=lambda exchange: schema)
    words = "y" * 5000
    result = await guarded(guard, {"content": [text(words)], "structuredContent": {"result": words}})
    structured = result["structuredContent"]
    assert isinstance(structured, dict)
    assert structured["result"].removesuffix(MARK) == "y" * (len(structured["result"]) - len(MARK))


async def test_images_pass_whatever_their_size() -> None:
    picture = {"type": "image", "data": base64.b64encode(bytes(200_000)).decode(), "mimeType": "image/png"}
    reply = Reply(result=as_raw({"content": [picture, text("a picture")]}))
    assert await through(ResultGuard(100), reply) is reply
    result = await guarded(ResultGuard(100), {"content": [picture, text("x" * 101)]})
    assert content(result) == [picture, text("x" * 100 + MARK)]


async def test_only_calls_of_tools_are_its_business() -> None:
    reply = Reply(result=as_raw({"contents": [{"uri": "a:b", "text": "\x1b[31m" + "x" * 500}]}))
    assert await through(ResultGuard(100), reply, method="resources/read") is reply
    nothing = Reply()
    assert await through(ResultGuard(100), nothing) is nothing


async def test_what_another_guard_said_of_the_reply_stays_with_it() -> None:
    verdict = Verdict("denied", "rule 1", "because")
    reply = Reply(result=error_result("x" * 500), verdict=verdict)
    assert (await through(ResultGuard(100), reply)).verdict is verdict


def test_it_stands_innermost() -> None:
    assert ResultGuard.stage is Stage.LIMITS


# ---- what was cut is kept


@pytest.mark.requirement("G25")
async def test_what_was_cut_can_be_read_from_the_link() -> None:
    store = KeptResults()
    caller = FakeCaller("me")
    words = "".join(f"line {number}\n" for number in range(2000))
    result = await guarded(ResultGuard(100, store=store), {"content": [text(words)]}, caller=caller)
    preview, link = content(result)
    assert preview == text(words[:100] + MARK)
    assert link["type"] == "resource_link"
    assert (link["mimeType"], link["size"]) == ("text/plain", len(words))
    assert result["_meta"] == {
        "plait/truncated": {"original_bytes": len(words), "kept_bytes": 100, "uri": link["uri"]}
    }
    assert store.read("me", str(link["uri"])).text == words
    store.close()


async def test_structured_content_is_kept_beside_the_text() -> None:
    store = KeptResults()
    structured = {"items": list(range(100))}
    guard = ResultGuard(100, store=store, reader="builtin__read_result")
    result = await guarded(
        guard, {"content": [text("x" * 500)], "structuredContent": structured}, caller=FakeCaller("me")
    )
    _, first, second = content(result)
    assert json.loads(store.read("me", str(second["uri"])).text) == structured
    assert second["mimeType"] == "application/json"
    meta = result["_meta"]
    assert isinstance(meta, dict)
    assert meta["plait/truncated"]["uri"] == first["uri"]
    assert meta["plait/truncated"]["structured_uri"] == second["uri"]
    assert "builtin__read_result" in str(first["description"])
    store.close()


async def test_a_client_of_an_older_revision_is_told_in_words() -> None:
    """Before 2025-06-18 there is no resource_link, and a strict client refuses what it does not know."""
    store = KeptResults()
    caller = FakeCaller("me", revision="2025-03-26")
    result = await guarded(ResultGuard(100, store=store), {"content": [text("x" * 500)]}, caller=caller)
    _, note = content(result)
    assert note["type"] == "text"
    assert store.list("me")[0].uri in str(note["text"])
    store.close()


@pytest.mark.requirement("G25")
async def test_ten_megabytes_are_a_preview_and_a_link_in_bounded_memory() -> None:
    store = KeptResults(memory_bytes=0)
    reply = Reply(result=text_result("0123456789" * 1_000_000))
    tracemalloc.start()
    try:
        result = result_of(await through(ResultGuard(store=store), reply))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(str(content(result)[0]["text"])) == 65_536 + len(MARK)
    assert peak < 8 * 10_000_000
    store.close()


async def test_a_large_result_is_worked_on_while_others_go_on() -> None:
    store = KeptResults()
    guard = ResultGuard(store=store)
    large = Reply(result=text_result("\x1b[31mé" * 500_000))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while not done.done():
            turns += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        done = group.create_task(through(guard, large))
        group.create_task(count())
    assert turns > 2
    assert content(result_of(done.result()))[0] == text("é" * 32_768 + MARK)
    store.close()


# ---- what it takes out


@pytest.mark.requirement("S1-047", "BC-38", "X-18")
async def test_control_characters_and_escapes_are_taken_out_of_texts_only() -> None:
    raw = Raw(
        rb'{"content":[{"type":"text","text":"\u001b[31mred\u001b[0m","k":"\u0007"},{"type":"x","y":"\u0000"}],'
        rb'"structuredContent":{"a":"\u001b[31m"}}'
    )
    reply = await through(ResultGuard(), Reply(result=raw))
    assert bytes(reply.result or b"") == (
        rb'{"content":[{"type":"text","text":"red","k":"\u0007"},{"type":"x","y":"\u0000"}],'
        rb'"structuredContent":{"a":"\u001b[31m"}}'
    )


async def test_sanitising_may_be_off_for_all_or_for_a_server() -> None:
    reply = Reply(result=text_result("\x1b[31mred"))
    assert await through(ResultGuard(sanitise=False), reply) is reply
    guard = ResultGuard(untouched={"terminal"})
    assert await through(guard, reply, server="terminal") is reply
    assert content(result_of(await through(guard, reply, server="other"))) == [text("red")]


async def test_invisible_characters_are_counted_and_left() -> None:
    result = await guarded(ResultGuard(), {"content": [text("a\u200bb\u200bc")], "_meta": {"k": 1}})
    assert result == {"content": [text("a\u200bb\u200bc")], "_meta": {"k": 1, "plait/invisible": 2}}
    emoji = Reply(result=text_result("❤️‍🔥 👩‍👩‍👧 می‌خواهم"))
    assert await through(ResultGuard(), emoji) is emoji


async def test_invisible_characters_go_where_somebody_asks_for_it() -> None:
    result = await guarded(ResultGuard(strip_invisible=True), {"content": [text("a\u200bb ❤️")]})
    assert result == {"content": [text("ab ❤️")]}


async def test_what_hides_behind_a_repeated_key_does_not_get_by() -> None:
    hidden = Raw(rb'{"content":[{"type":"text","text":"\u001b[31m"}],"content":[]}')
    reply = await through(ResultGuard(), Reply(result=hidden))
    assert reply.result == Raw(b'{"content":[]}')
    large = Raw(b'{"content":[{"type":"text","text":"%s"}],"content":[]}' % (b"x" * 500))
    reply = await through(ResultGuard(100), Reply(result=large))
    assert reply.result == Raw(b'{"content":[]}')


# ---- whatever comes

BLOCKS = st.one_of(
    st.text(max_size=60).map(text),
    st.text(max_size=20),
    st.text(max_size=60).map(lambda words: {"type": "resource", "resource": {"uri": "a:b", "text": words}}),
    st.just({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
    st.integers() | st.none(),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=6,
)
RESULTS = st.fixed_dictionaries(
    {"content": st.lists(BLOCKS, max_size=5) | ANYTHING},
    optional={"structuredContent": ANYTHING, "isError": st.booleans(), "_meta": ANYTHING, "x": ANYTHING},
)
SPELLINGS = st.fixed_dictionaries({"ensure_ascii": st.booleans(), "indent": st.sampled_from([None, 1])})


def texts(result: Mapping[str, object]) -> list[str]:
    blocks = result.get("content")
    found: list[str] = []
    for block in blocks if isinstance(blocks, list) else []:
        holder = block.get("resource") if isinstance(block, dict) and "text" not in block else block
        words = holder.get("text") if isinstance(holder, dict) else holder
        found += [words] if isinstance(words, str) else []
    return found


@settings(deadline=None)
@given(RESULTS, SPELLINGS, st.integers(0, 200))
def test_whatever_comes_is_valid_clean_and_within_its_budget(
    result: dict[str, object], spelling: dict[str, bool], limit: int
) -> None:
    raw = Raw(json.dumps(result, ensure_ascii=spelling["ensure_ascii"], indent=spelling["indent"]).encode())
    reply = asyncio.run(through(ResultGuard(limit), Reply(result=raw)))
    after = result_of(reply)
    words = texts(after)
    assert all(neutralise(each) == each for each in words)
    left = [each.removesuffix(MARK) for each in words]
    assert sum(len(each.encode()) for each in left) <= limit
    untouched = {"content", "structuredContent", "_meta"}
    assert {k: v for k, v in after.items() if k not in untouched} == {
        k: v for k, v in result.items() if k not in untouched
    }
    same = all(neutralise(each) == each and not count_unseen(each) for each in texts(result))
    structured = len(open_fields(raw).get("structuredContent", b""))
    if same and sum(len(each.encode()) for each in texts(result)) + structured <= limit:
        assert reply.result == raw
    if len(raw) <= limit and harmless(bytes(raw)):
        assert reply.result == raw
