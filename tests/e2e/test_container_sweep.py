"""A plait that is killed cannot remove its containers; the next one does, and spares those of the living."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import StandIn
from gateway import Gateway, text_of, write_config
from processes import until

pytestmark = [pytest.mark.e2e, pytest.mark.requirement("S3-18")]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[StandIn]:
    engine = StandIn(tmp_path)
    yield engine
    assert engine.left == []


def gateway(engine: StandIn, *options: str, flags: tuple[str, ...] = ()) -> Gateway:
    entry = engine.entry(*options, flags=flags)
    config = write_config(engine.folder / "plait.json", {"boxed": entry}, {"startWait": 30})
    return Gateway(config, environ=engine.environ)


async def works(plait: Gateway) -> bool:
    return text_of(await plait.call("boxed__echo", {"text": "hello"})) == "hello"


async def test_what_a_killed_plait_left_behind_is_removed_by_the_next_one(engine: StandIn) -> None:
    async with gateway(engine, "--name", "box") as killed:
        await killed.shake_hands()
        assert await works(killed)
        left = engine.containers
        killed.process.kill()
        await killed.process.wait()
    assert len(left) == 1
    assert engine.containers == left
    async with gateway(engine, "--name", "box") as plait:
        await plait.shake_hands()
        assert await works(plait)  # under the same name, which two cannot have
        assert len(engine.containers) == 1
        assert engine.containers != left
    assert plait.process.returncode == 0


async def test_what_a_killed_plait_had_only_begun_is_found_by_its_label(engine: StandIn) -> None:
    engine.begin("slow-id")
    async with gateway(engine) as killed:
        await until(lambda: len(engine.containers) == 1)
        killed.process.kill()
        await killed.process.wait()
    left = engine.containers
    engine.end("slow-id")
    async with gateway(engine) as plait:
        await plait.shake_hands()
        assert await works(plait)
        assert not set(left) & set(engine.containers)


async def test_two_at_once_leave_each_others_containers_alone(engine: StandIn) -> None:
    async with gateway(engine) as first:
        await first.shake_hands()
        assert await works(first)
        firsts = engine.containers
        async with gateway(engine) as second:
            await second.shake_hands()
            assert await works(second)
            assert len(engine.containers) == 2
            assert set(firsts) < set(engine.containers)
        assert engine.containers == firsts
        assert await works(first)


async def test_a_server_that_crashes_has_one_container_at_a_time(engine: StandIn) -> None:
    async with gateway(engine, "--name", "box") as plait:
        await plait.shake_hands()
        for _ in range(3):
            assert await works(plait)
            assert len(engine.containers) == 1
            await plait.call("boxed__leave")
    assert "already in use" not in plait.stderr


async def test_a_plait_that_ends_while_its_server_is_stubborn_leaves_nothing(engine: StandIn) -> None:
    async with gateway(engine, flags=("--stubborn",)) as plait:
        await plait.shake_hands()
        assert await works(plait)
        plait.process.terminate()
        await plait.process.wait()
    assert plait.process.returncode == 0
