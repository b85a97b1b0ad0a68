"""A stream is read to its end, within its limits, and cleans up whatever happens."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from clock import jumping, now, quiet
from fakes import Message, words
from plait.config.model import StreamSettings
from plait.errors import ExecutionFailed, NotFound
from plait.providers.adapter import ProviderLink
from plait.providers.builtin import BuiltinToolProvider
from plait.providers.calling import Provider, may_log
from plait.providers.composite import CompositeToolProvider
from plait.providers.context import ToolContext
from plait.providers.function import FunctionProvider
from plait.providers.stream_events import StreamEvent
from plait.providers.streaming import GRACE, collect, stream
from plait.upstream.client import Listener
from plait.wire.address import as_raw
from plait.wire.spec import LEVELS
from plait.wire.tools import CallToolResult, ToolDefinition
from seams import FakeCaller, result_of

E = StreamEvent
Logged = tuple[str, object, str | None]


class Told:
    """What a caller is told while a tool streams."""

    def __init__(self) -> None:
        self.progress: list[tuple[float, float | None, str | None]] = []
        self.logs: list[Logged] = []
        self.counted: list[tuple[str, str]] = []

    def context(self, **limits: float) -> ToolContext:
        return ToolContext(
            lambda *report: self.progress.append(report),
            lambda *log: self.logs.append(log),
            limits=StreamSettings(**limits),  # type: ignore[arg-type]
            count=lambda *what: self.counted.append(what),
        )


class Life:
    """A generator that says when it has cleaned up."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.cleaned = False

    async def __call__(self, *events: object, then: float = 0, cleaning: float = 0) -> AsyncIterator[object]:
        try:
            for event in events:
                yield event
            self.started.set()
            await asyncio.sleep(then)
        finally:
            await asyncio.sleep(cleaning)
            self.cleaned = True


def texts(result: CallToolResult) -> list[object]:
    return [block.fields["text"] for block in result.content]


# ---- from the first event to the last


@pytest.mark.requirement("S4-09")
@jumping
async def test_a_stream_is_one_result_and_has_cleaned_up_by_then() -> None:
    life = Life()
    result = await collect(
        life("Hello", {"type": "content", "text": "!"}, E.done(), "late"), ToolContext(), "t"
    )
    assert (texts(result), result.is_error, life.cleaned) == (["Hello!"], False, True)


@jumping
async def test_what_is_no_generator_but_can_be_iterated_will_do() -> None:
    class Three:
        def __init__(self) -> None:
            self.left = 3

        def __aiter__(self) -> "Three":
            return self

        async def __anext__(self) -> str:
            if not self.left:
                raise StopAsyncIteration
            self.left -= 1
            return str(self.left)

    assert texts(await collect(Three(), ToolContext(), "t")) == ["210"]


@jumping
async def test_a_generator_that_never_waits_lets_others_run() -> None:
    ran: list[float] = []

    async def other() -> None:
        for _ in range(5):
            ran.append(now())
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        reading = group.create_task(collect(Life()(*["x"] * 1000), ToolContext(), "t"))
        group.create_task(other())
    assert texts(reading.result()) == ["x" * 1000]
    assert len(ran) == 5


@pytest.mark.requirement("X-41", "S4-10")
@jumping
async def test_what_a_stream_raises_in_the_middle_is_an_error_result_that_keeps_what_came(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails(problem: Exception) -> AsyncIterator[str]:
        yield "so far"
        raise problem

    for problem in (ExecutionFailed("disk full"), ZeroDivisionError("by zero")):
        result = await collect(fails(problem), ToolContext(), "t")
        assert result.is_error
        assert texts(result)[0] == "so far"
    assert [record.message for record in caplog.records] == ["tool t failed in the middle of its stream"]


@pytest.mark.requirement("S4-08")
@jumping
async def test_what_it_raises_before_its_first_event_is_raised() -> None:
    async def none() -> AsyncIterator[str]:
        if not life.cleaned:
            raise NotFound("t")
        yield ""

    life = Life()
    with pytest.raises(NotFound):
        await collect(none(), ToolContext(), "t")


@jumping
async def test_what_cannot_be_sent_fails_the_stream_there() -> None:
    result = await collect(Life()("a", E.content(object()), "b"), ToolContext(), "t")
    assert (texts(result)[0], result.is_error, len(result.content)) == ("a", True, 2)


@jumping
async def test_one_that_cancels_itself_has_failed() -> None:
    async def odd() -> AsyncIterator[str]:
        yield "a"
        raise asyncio.CancelledError

    result = await collect(odd(), ToolContext(), "t")
    assert (texts(result), result.is_error) == (["a", "the stream was ended before it was done"], True)


@jumping
async def test_a_cleaning_up_that_fails_is_logged_and_the_result_stands(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def untidy() -> AsyncIterator[object]:
        try:
            yield "a"
            yield E.done()
            yield "b"
        finally:
            raise RuntimeError("no mop")

    result = await collect(untidy(), ToolContext(), "t")
    assert (texts(result), result.is_error) == (["a"], False)
    assert "failed to clean up" in caplog.text


# ---- what the caller is told meanwhile


@pytest.mark.requirement("BP-18")
@jumping
async def test_progress_is_told_and_one_without_a_number_is_still_more_than_the_last() -> None:
    told = Told()
    events = (
        E.progress(message="thinking"),
        E.progress(3, 4),
        E.progress(message="still"),
        {"type": "progress", "percentage": 80, "message": "soon"},
        E.progress(float("nan")),
    )
    await collect(Life()(*events), told.context(), "t")
    values = [value for value, _, _ in told.progress]
    assert values == sorted(set(values))
    assert [(round(value), total, message) for value, total, message in told.progress] == [
        (0, None, "thinking"),
        (3, 4, None),
        (3, None, "still"),
        (80, 100, "soon"),
        (80, None, None),
    ]


@jumping
async def test_content_is_told_as_it_comes_and_not_at_the_end() -> None:
    told, life = Told(), Life()
    async with asyncio.TaskGroup() as group:
        group.create_task(collect(life("a", "b", then=10), told.context(), "t"))
        await life.started.wait()
        assert (told.logs, now()) == ([("info", "a", None), ("info", "b", None)], 0)


@pytest.mark.requirement("BP-18")
@jumping
async def test_logs_errors_and_requests_are_told_and_a_request_holds_nothing_up() -> None:
    told = Told()
    events = (E.log({"n": 1}, "debug", "engine"), E.error("hm", recoverable=True), E.request("sure?"), "on")
    result = await collect(Life()(*events), told.context(), "t")
    assert texts(result) == ["on"]
    assert told.logs == [
        ("debug", {"n": 1}, "engine"),
        ("warning", "hm", None),
        ("notice", {"request": {"data": "sure?"}}, None),
        ("info", "on", None),
    ]


@jumping
async def test_kinds_that_nobody_knows_are_counted_where_people_look() -> None:
    told = Told()
    await collect(Life()(E("thinking"), 5, "a"), told.context(), "t")
    assert told.counted == [("unknown stream event", "t: thinking"), ("unknown stream event", "t: no event")]


@jumping
async def test_a_level_that_is_none_is_refused_and_a_thread_may_log() -> None:
    told = Told()
    context = told.context()
    with pytest.raises(ValueError, match="'loud' is no level"):
        context.log("x", "loud")
    await asyncio.to_thread(context.log, "from a thread")
    await quiet()
    assert told.logs == [("info", "from a thread", None)]


# ---- limits


@pytest.mark.requirement("BP-23")
@jumping
async def test_a_stream_without_end_is_stopped_and_cleans_up() -> None:
    cleaned = False

    async def endless() -> AsyncIterator[str]:
        nonlocal cleaned
        try:
            while True:
                yield "x"
        finally:
            cleaned = True

    result = await collect(endless(), Told().context(items=1000), "t")
    assert (texts(result)[0], result.is_error, cleaned) == ("x" * 1000, True, True)
    result = await collect(endless(), Told().context(bytes=7), "t")
    assert (texts(result)[0], result.is_error) == ("x" * 7, True)


@pytest.mark.requirement("BP-23")
@jumping
async def test_a_stream_that_takes_too_long_is_stopped_and_what_came_is_kept() -> None:
    life = Life()
    result = await collect(life("a", then=1000), Told().context(seconds=30), "t")
    assert (texts(result), life.cleaned, now()) == (
        [
            "a",
            "the stream was stopped: not done within 30 s."
            " What came before is kept; 'stream.seconds' is the limit",
        ],
        True,
        30,
    )
    assert result.is_error


@pytest.mark.requirement("X-41")
@jumping
async def test_after_a_failure_it_is_read_on_but_not_for_long() -> None:
    life = Life()
    result = await collect(life("a", E.error("no"), "b", then=1000), ToolContext(), "t")
    assert (texts(result), result.is_error, life.cleaned, now()) == (["a", "no", "b"], True, True, GRACE)


@jumping
async def test_a_cleaning_up_without_end_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    context, life = ToolContext(), Life()
    result = await collect(life("a", E.done(), cleaning=1000), context, "t")
    assert (texts(result), result.is_error, now()) == (["a"], False, GRACE)
    assert len(context.tasks) == 0, "it was cancelled once more, and gave in"

    async def stubborn() -> AsyncIterator[str]:
        yield "a"
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    released = asyncio.Event()
    context = Told().context(seconds=1)
    result = await collect(stubborn(), context, "t2")
    assert (result.is_error, now(), len(context.tasks)) == (True, 2 * GRACE + 1, 1)
    assert "tool t2: its stream did not end within 5 s of being stopped" in caplog.text
    released.set()
    await quiet()
    assert len(context.tasks) == 0


# ---- cancellation


@pytest.mark.requirement("BP-09", "X-40")
@jumping
async def test_a_call_that_is_cancelled_stops_the_generator_and_waits_for_its_cleaning_up() -> None:
    life, context = Life(), ToolContext()
    task = asyncio.get_running_loop().create_task(collect(life("a", then=1000, cleaning=2), context, "t"))
    await life.started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (life.cleaned, context.cancelled, len(context.tasks), now()) == (True, True, 0, 2)


# ---- the providers


class Chat:
    """Tools that stream, as somebody writes them."""

    namespace = "claudecode"

    def __init__(self) -> None:
        self.life = Life()

    async def list_tools(self) -> list[ToolDefinition]:
        return [ToolDefinition("chat", "Talks.")]

    async def stream_tool(self, name: str, arguments: dict[str, object]) -> AsyncIterator[StreamEvent]:
        if name != "chat":
            raise NotFound(name)
        yield E.start()
        for word in str(arguments.get("query", "")).split():
            yield E.content(word)
        yield E.done()


class Started(Chat):
    """The call is one step, its stream the next."""

    def stream_tool(  # type: ignore[override]
        self, name: str, arguments: dict[str, object]
    ) -> Awaitable[AsyncIterator[StreamEvent]]:
        return self._start(name, arguments)

    async def _start(self, name: str, arguments: dict[str, object]) -> AsyncIterator[StreamEvent]:
        if "query" not in arguments:
            raise ExecutionFailed("Session 'foo' not found")
        return super().stream_tool(name, arguments)


async def talk(query: str, loudly: bool = False) -> AsyncIterator[StreamEvent | str]:
    """Says it word by word."""
    for word in query.split():
        yield word.upper() if loudly else word


async def request(
    link: ProviderLink, name: str, caller: FakeCaller | None = None, **arguments: object
) -> Message:
    params = {"name": as_raw(name), "arguments": as_raw(arguments)}
    exchange = None if caller is None else caller.exchange("tools/call", name=name)
    return result_of(await link.request("tools/call", params, exchange))


@pytest.mark.requirement("S4-07", "BP-09")
@pytest.mark.parametrize("make", [Chat, Started])
@jumping
async def test_a_class_that_streams_is_called_like_any_provider(make: Callable[[], Chat]) -> None:
    assert await request(ProviderLink(make()), "chat", query="three strands") == {
        "content": [{"type": "text", "text": "threestrands"}],
        "isError": False,
    }


@pytest.mark.requirement("S4-08", "S4-10")
@jumping
async def test_a_call_that_cannot_be_started_is_one_text_that_says_why() -> None:
    failed = await request(ProviderLink(Started()), "chat")
    assert (failed["isError"], words(failed)) == (True, "execution failed: Session 'foo' not found")
    unknown = await request(ProviderLink(Chat()), "sing")
    assert (unknown["isError"], words(unknown)) == (True, "not found: sing")


@jumping
async def test_a_generator_function_is_a_tool_like_any_function() -> None:
    provider = FunctionProvider("demo", [talk])
    [tool] = await provider.list_tools()
    assert (tool.description, tool.input_schema["required"]) == ("Says it word by word.", ["query"])
    assert texts(await provider.call_tool("talk", {"query": "a b", "loudly": True})) == ["AB"]
    wrong = await provider.call_tool("talk", {"query": 5})
    assert (wrong.is_error, texts(wrong)) == (True, ["talk: Expected `str`, got `int` - at `$.query`"])


@jumping
async def test_a_function_may_give_back_a_stream() -> None:
    def later(query: str) -> AsyncIterator[StreamEvent | str]:
        return talk(query)

    assert texts(await FunctionProvider("demo", [later]).call_tool("later", {"query": "a b"})) == ["ab"]


@jumping
async def test_a_composite_has_providers_that_stream_too() -> None:
    tools = CompositeToolProvider()
    tools.register(Chat())
    for name in ("claudecode__chat", "claudecode.chat", "chat"):
        assert texts(await tools.call_tool(name, {"query": "a b"})) == ["ab"]


@jumping
async def test_only_those_that_may_log_declare_it() -> None:
    def plain() -> str:
        return ""

    def asking(context: ToolContext) -> str:
        return ""

    composite = CompositeToolProvider()
    silent: list[Provider] = [
        BuiltinToolProvider([], lambda name, arguments: ""),
        FunctionProvider("a", [plain]),
        composite,
    ]
    assert [may_log(provider) for provider in silent] == [False, False, False]
    composite.register(Chat())
    loud: list[Provider] = [Chat(), FunctionProvider("a", [talk]), FunctionProvider("a", [asking]), composite]
    assert [may_log(provider) for provider in loud] == [True, True, True, True]
    link = ProviderLink(Chat())
    assert (link.supports("logging"), link.supports("logging", "x")) == (True, False)
    assert result_of(await link.request("logging/setLevel", {"level": as_raw("debug")})) == {}


@jumping
async def test_content_is_logged_to_a_client_that_asked_from_its_level_on() -> None:
    async def speak() -> AsyncIterator[object]:
        yield "a"
        yield E.log("half \ud83d", "warning", "engine")
        yield E.log(object(), "error")

    link = ProviderLink(FunctionProvider("demo", [speak]))
    silent, quiet_one, loud = FakeCaller("silent"), FakeCaller("quiet"), FakeCaller("loud")
    quiet_one.level, loud.level = LEVELS.index("warning"), LEVELS.index("debug")
    for caller in (silent, quiet_one, loud):
        await request(link, "speak", caller)
    assert silent.heard == []
    warning = {"level": "warning", "logger": "engine", "data": "half ?"}
    assert quiet_one.heard[0] == ("notifications/message", warning)
    assert [params["level"] for _, params in quiet_one.heard] == ["warning", "error"]
    assert loud.heard[0] == ("notifications/message", {"level": "info", "logger": "speak", "data": "a"})


# ---- the time of a call


async def slow(steps: int, pause: float) -> AsyncIterator[str]:
    for step in range(steps):
        yield str(step)
        await asyncio.sleep(pause)


@jumping
async def test_every_event_starts_the_time_of_a_call_anew() -> None:
    link = ProviderLink(FunctionProvider("slow", [slow]), timeout=30)
    assert words(await request(link, "slow", steps=5, pause=20)) == "01234"


@jumping
async def test_a_stream_that_falls_silent_is_stopped_and_what_came_is_kept() -> None:
    link = ProviderLink(FunctionProvider("slow", [slow]), timeout=30)
    result = await request(link, "slow", steps=2, pause=31)
    assert (result["isError"], now()) == (True, 30)
    assert words(result) == (
        "0the stream was stopped: nothing came for 30 s. What came before is kept; 'timeout' is the limit"
    )


@jumping
async def test_the_limits_of_a_mount_hold_for_its_streams() -> None:
    link = ProviderLink(FunctionProvider("slow", [slow]), limits=StreamSettings(items=2))
    assert "more than 2 events" in words(await request(link, "slow", steps=3, pause=0))


@jumping
async def test_a_link_that_closes_ends_its_streams(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "plait.provider")
    link = ProviderLink(FunctionProvider("slow", [slow]), listener=Listener())
    task = asyncio.get_running_loop().create_task(request(link, "slow", steps=2, pause=100))
    await quiet()
    await link.aclose()
    result = await task
    assert (result["isError"], words(result)) == (True, "0the stream was ended before it was done")


@jumping
async def test_a_stream_can_be_called_without_any_mount() -> None:
    assert texts(await stream(Chat(), "chat", {"query": "a b"}, ToolContext())) == ["ab"]
