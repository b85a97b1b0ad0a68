"""x"""
from clients import Client, compositor
from clock import jumping
from fakes import FakeServer, words

@jumping
async def test_try() -> None:
    async with compositor(FakeServer("a", tools=["t"]), FakeServer("b", tools=["t"])) as made, Client(made) as client:
        assert await client.names() == ["a__t", "b__t"]
        assert words(await client.call("b__t", x=1)) == 'b: t {"x":1}'
