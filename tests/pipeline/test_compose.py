from msgspec import Raw

from plait.pipeline.compose import compose
from plait.session.exchange import Exchange, Handler, Reply


class Trail:
    """A layer that notes when it is crossed, both ways."""

    def __init__(self, name: str, trail: list[str]) -> None:
        self._name = name
        self._trail = trail

    async def __call__(self, exchange: Exchange, call_next: Handler) -> Reply:
        self._trail.append(f"{self._name} in")
        reply = await call_next(exchange)
        self._trail.append(f"{self._name} out")
        return reply


async def test_the_first_layer_is_the_outermost() -> None:
    trail: list[str] = []

    async def innermost(exchange: Exchange) -> Reply:
        trail.append("handler")
        return Reply(result=Raw(b"{}"))

    handler = compose([Trail("a", trail), Trail("b", trail)], innermost)
    await handler(Exchange(b"1", "x", {}, "", None))  # type: ignore[arg-type]
    assert trail == ["a in", "b in", "handler", "b out", "a out"]


async def test_a_layer_that_refuses_answers_itself() -> None:
    async def refusing(exchange: Exchange, call_next: Handler) -> Reply:
        return Reply(result=Raw(b'{"no":1}'))

    async def innermost(exchange: Exchange) -> Reply:
        raise AssertionError("never reached")

    reply = await compose([refusing], innermost)(Exchange(b"1", "x", {}, "", None))  # type: ignore[arg-type]
    assert reply.result == Raw(b'{"no":1}')
