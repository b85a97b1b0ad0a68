"""Which client watches which resource."""

import asyncio

import pytest

from clock import jumping, quiet
from plait.errors import UpstreamUnavailable
from plait.routing.subscriptions import SUBSCRIBE, UNSUBSCRIBE, UPDATED, Subscriptions
from plait.session.exchange import Exchange, Reply, refuse
from plait.wire.address import as_raw
from plait.wire.envelope import EMPTY, Fields
from seams import FakeCaller, FakeOffer, result_of

URI = "file:///a"


def subscribe(caller: FakeCaller, uri: str = URI) -> Exchange:
    return caller.exchange(SUBSCRIBE, uri=uri)


def unsubscribe(caller: FakeCaller, uri: str = URI) -> Exchange:
    return caller.exchange(UNSUBSCRIBE, uri=uri)


def update(subscriptions: Subscriptions, offer: FakeOffer, uri: str = URI) -> bool:
    return subscriptions.updated(offer, uri, {"uri": as_raw(uri)})


def sent(offer: FakeOffer) -> list[tuple[str, object]]:
    return [(method, params["uri"]) for method, params in offer.requests]


# ---- one subscription at the server


async def test_the_server_hears_of_the_first_and_of_the_last_only() -> None:
    fs, watched = FakeOffer("fs"), Subscriptions()
    ann, bob = FakeCaller("ann"), FakeCaller("bob")
    for caller in (ann, bob, ann):
        assert result_of(await watched.subscribe(fs, subscribe(caller))) == {}
    assert sent(fs) == [(SUBSCRIBE, URI)]
    assert result_of(await watched.unsubscribe(fs, unsubscribe(ann))) == {}
    assert sent(fs) == [(SUBSCRIBE, URI)]
    assert result_of(await watched.unsubscribe(fs, unsubscribe(bob))) == {}
    assert sent(fs) == [(SUBSCRIBE, URI), (UNSUBSCRIBE, URI)]


async def test_unsubscribing_from_what_one_does_not_watch_is_no_error_and_no_news() -> None:
    fs, watched = FakeOffer("fs"), Subscriptions()
    ann, bob = FakeCaller("ann"), FakeCaller("bob")
    assert result_of(await watched.unsubscribe(fs, unsubscribe(ann))) == {}
    await watched.subscribe(fs, subscribe(ann))
    assert result_of(await watched.unsubscribe(fs, unsubscribe(bob))) == {}
    assert sent(fs) == [(SUBSCRIBE, URI)]


async def test_the_same_uri_at_two_servers_is_two_resources() -> None:
    fs, notes, watched = FakeOffer("fs"), FakeOffer("notes"), Subscriptions()
    ann = FakeCaller("ann")
    await watched.subscribe(fs, subscribe(ann))
    assert not update(watched, notes)
    assert update(watched, fs)


async def test_what_the_server_refuses_is_not_watched() -> None:
    fs, watched = FakeOffer("fs"), Subscriptions()
    ann = FakeCaller("ann")
    fs.replies = [refuse(-32000, "no")]
    assert (await watched.subscribe(fs, subscribe(ann))).error is not None
    assert not update(watched, fs)
    await watched.subscribe(fs, subscribe(ann))
    assert update(watched, fs)
    assert sent(fs) == [(SUBSCRIBE, URI)] * 2


async def test_a_server_that_fails_leaves_nothing_watched() -> None:
    fs, watched = FakeOffer("fs"), Subscriptions()
    fs.replies = [UpstreamUnavailable("gone")]
    with pytest.raises(UpstreamUnavailable):
        await watched.subscribe(fs, subscribe(FakeCaller("ann")))
    assert not update(watched, fs)


class SlowOffer(FakeOffer):
    """Answers when it is told to."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.waiting: list[asyncio.Future[Reply]] = []

    async def request(self, method: str, params: Fields | None, exchange: Exchange | None = None) -> Reply:
        await super().request(method, params, exchange)
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.waiting.append(answer)
        return await answer


@jumping
async def test_a_second_client_is_told_that_all_is_well_only_when_it_is() -> None:
    slow, watched = SlowOffer(), Subscriptions()
    ann, bob = FakeCaller("ann"), FakeCaller("bob")
    async with asyncio.TaskGroup() as group:
        first = group.create_task(watched.subscribe(slow, subscribe(ann)))
        second = group.create_task(watched.subscribe(slow, subscribe(bob)))
        await quiet()
        assert not first.done()
        assert not second.done()
        slow.waiting[0].set_result(Reply(result=EMPTY))
    assert sent(slow) == [(SUBSCRIBE, URI)]
    assert update(watched, slow)
    assert len(ann.heard) == len(bob.heard) == 1


@jumping
async def test_when_the_first_is_refused_the_second_asks_for_itself() -> None:
    slow, watched = SlowOffer(), Subscriptions()
    ann, bob = FakeCaller("ann"), FakeCaller("bob")
    async with asyncio.TaskGroup() as group:
        first = group.create_task(watched.subscribe(slow, subscribe(ann)))
        second = group.create_task(watched.subscribe(slow, subscribe(bob)))
        await quiet()
        slow.waiting[0].set_result(refuse(-32000, "no"))
        await quiet()
        slow.waiting[1].set_result(Reply(result=EMPTY))
    assert (first.result().error is None, second.result().error is None) == (False, True)
    assert update(watched, slow)
    assert (len(ann.heard), len(bob.heard)) == (0, 1)


# ---- updates


async def test_an_update_reaches_those_who_watch_and_nobody_else() -> None:
    fs, watched = FakeOffer("fs"), Subscriptions()
    ann, bob, eve = FakeCaller("ann"), FakeCaller("bob"), FakeCaller("eve")
    for caller in (ann, bob):
        await watched.subscribe(fs, subscribe(caller))
    await watched.subscribe(fs, subscribe(eve, "file:///b"))
    await watched.unsubscribe(fs, unsubscribe(bob))
    assert watched.updated(fs, URI, {"uri": as_raw(URI), "title": as_raw("kept")})
    assert ann.heard == [(UPDATED, {"uri": URI, "title": "kept"})]
    assert bob.heard == eve.heard == []


@pytest.mark.parametrize(
    ("watching", "updated"),
    [
        ("x://dir", "x://dir/file"),
        ("x://dir/", "x://dir/file"),
        ("x://doc", "x://doc#part"),
        ("x://doc", "x://doc?page=2"),
        ("x://", "x://anything"),
    ],
)
async def test_an_update_of_a_part_reaches_those_who_watch_the_whole(watching: str, updated: str) -> None:
    fs, watched, ann = FakeOffer("fs"), Subscriptions(), FakeCaller("ann")
    await watched.subscribe(fs, subscribe(ann, watching))
    assert update(watched, fs, updated)
    assert ann.heard == [(UPDATED, {"uri": updated})]


@pytest.mark.parametrize("updated", ["x://directory", "x://dir2/file", "x://di", "y://dir/file"])
async def test_an_update_of_something_else_reaches_nobody(updated: str) -> None:
    fs, watched, ann = FakeOffer("fs"), Subscriptions(), FakeCaller("ann")
    await watched.subscribe(fs, subscribe(ann, "x://dir"))
    assert not update(watched, fs, updated)
    assert ann.heard == []


async def test_those_who_watch_the_whole_hear_of_a_part_that_somebody_watches_too() -> None:
    fs, watched = FakeOffer("fs"), Subscriptions()
    whole, part, both = FakeCaller("whole"), FakeCaller("part"), FakeCaller("both")
    for caller in (whole, both):
        await watched.subscribe(fs, subscribe(caller, "x://dir"))
    for caller in (part, both):
        await watched.subscribe(fs, subscribe(caller, "x://dir/file"))
    assert update(watched, fs, "x://dir/file")
    assert [len(caller.heard) for caller in (whole, part, both)] == [1, 1, 1]


# ---- ends


async def test_what_only_a_client_that_left_watched_is_watched_no_longer() -> None:
    fs, watched = FakeOffer("fs"), Subscriptions()
    ann, bob = FakeCaller("ann"), FakeCaller("bob")
    await watched.subscribe(fs, subscribe(ann))
    await watched.subscribe(fs, subscribe(ann, "file:///b"))
    await watched.subscribe(fs, subscribe(bob))
    await watched.leave(ann)
    assert sent(fs)[2:] == [(UNSUBSCRIBE, "file:///b")]
    assert update(watched, fs)
    assert (len(ann.heard), len(bob.heard)) == (0, 1)


async def test_leaving_goes_on_where_a_server_is_gone() -> None:
    fs, notes, watched, ann = FakeOffer("fs"), FakeOffer("notes"), Subscriptions(), FakeCaller("ann")
    await watched.subscribe(fs, subscribe(ann))
    await watched.subscribe(notes, subscribe(ann))
    fs.replies = [UpstreamUnavailable("gone")]
    await watched.leave(ann)
    assert sent(notes) == [(SUBSCRIBE, URI), (UNSUBSCRIBE, URI)]


async def test_a_server_that_was_unmounted_is_forgotten_without_a_word_to_it() -> None:
    fs, notes, watched, ann = FakeOffer("fs"), FakeOffer("notes"), Subscriptions(), FakeCaller("ann")
    await watched.subscribe(fs, subscribe(ann))
    await watched.subscribe(notes, subscribe(ann))
    watched.forget(fs)
    assert not update(watched, fs)
    assert update(watched, notes)
    assert sent(fs) == [(SUBSCRIBE, URI)]


async def test_after_a_restart_all_is_subscribed_again_and_may_have_changed() -> None:
    fs, notes, watched = FakeOffer("fs"), FakeOffer("notes"), Subscriptions()
    ann, bob = FakeCaller("ann"), FakeCaller("bob")
    await watched.subscribe(fs, subscribe(ann))
    await watched.subscribe(fs, subscribe(bob))
    await watched.subscribe(notes, subscribe(bob))
    await watched.renew(fs)
    assert sent(fs) == [(SUBSCRIBE, URI)] * 2
    assert sent(notes) == [(SUBSCRIBE, URI)]
    assert ann.heard == bob.heard == [(UPDATED, {"uri": URI})]
