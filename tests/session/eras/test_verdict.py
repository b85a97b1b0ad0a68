"""What an answer to the probe says of a server."""

import pytest

from plait.session.eras.verdict import BELIEVED, EraMemory, Incompatible, Reluctant, invites, judge
from plait.session.exchange import Reply, refuse
from plait.session.negotiation import Greeting
from plait.wire.address import as_raw
from plait.wire.spec import Era


def result(**fields: object) -> Reply:
    return Reply(result=as_raw(fields))


def test_a_list_with_our_revision_is_a_modern_servers() -> None:
    found = judge(
        result(
            supportedVersions=["2030-01-01", "2026-07-28"],
            capabilities={"tools": {}},
            instructions="hi",
            _meta={"io.modelcontextprotocol/serverInfo": {"name": "m"}},
        )
    )
    assert isinstance(found, Greeting)
    assert (found.revision, found.instructions, list(found.capabilities)) == ("2026-07-28", "hi", ["tools"])
    assert bytes(found.info["name"]) == b'"m"'


def test_an_old_drafts_place_for_the_name_is_read_too() -> None:
    found = judge(result(supportedVersions=["2026-07-28"], serverInfo={"name": "old"}))
    assert isinstance(found, Greeting)
    assert bytes(found.info["name"]) == b'"old"'


@pytest.mark.parametrize(
    "reply",
    [
        result(),
        result(content=[]),
        result(supportedVersions="2026-07-28"),
        result(supportedVersions=["2025-11-25"]),
        refuse(-32601, "no"),
        refuse(-32600, "no"),
        refuse(-32002, "not initialized"),
        refuse(-32022, "no", {"supported": ["2025-11-25", "2031-01-01"]}),
    ],
)
def test_anything_that_does_not_say_so_is_a_handshake_servers(reply: Reply) -> None:
    assert judge(reply) is Era.HANDSHAKE


def test_a_modern_server_of_another_revision_is_not_fallen_back_from() -> None:
    assert judge(refuse(-32022, "no", {"supported": ["2031-01-01"]})) == Incompatible(("2031-01-01",))


def test_a_refusal_of_our_revision_that_names_it_invites_us_to_ask_again() -> None:
    contradictory = refuse(-32022, "no", {"supported": ["2026-07-28"]})
    assert invites(contradictory)
    assert isinstance(judge(contradictory), Reluctant)
    for other in (result(), refuse(-32022, "no", {"supported": ["2031-01-01"]}), refuse(-32601, "no")):
        assert not invites(other)


@pytest.mark.parametrize("code", [-32020, -32021])
def test_an_error_that_only_modern_servers_know_is_one(code: int) -> None:
    assert isinstance(judge(refuse(code, "no")), Reluctant)


def test_a_modern_verdict_stays_and_the_other_does_not() -> None:
    memory = EraMemory()
    assert memory.recall(0) is None
    memory.learn(Era.HANDSHAKE, 100)
    assert memory.recall(100 + BELIEVED) is Era.HANDSHAKE
    assert memory.recall(101 + BELIEVED) is None
    memory.learn(Era.MODERN, 100)
    assert memory.recall(100 + 1000 * BELIEVED) is Era.MODERN
    memory.forget()
    assert memory.recall(100) is None
