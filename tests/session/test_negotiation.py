import pytest
from msgspec import Raw

from plait.session.negotiation import era_of, fields_of, hello, may_ask, read_greeting, relayable
from plait.wire.envelope import Fields
from plait.wire.spec import Era


def caps(**declared: str) -> Fields:
    return {name: Raw(value.encode()) for name, value in declared.items()}


@pytest.mark.requirement("S1-030")
@pytest.mark.parametrize(
    "fields", [{}, caps(protocolVersion="3", capabilities="[]", serverInfo='"x"', instructions="{}")]
)
def test_a_greeting_may_lack_everything(fields: Fields) -> None:
    greeting = read_greeting(fields)
    assert (greeting.revision, greeting.capabilities, greeting.info, greeting.instructions) == (
        "",
        {},
        {},
        "",
    )


def test_a_server_is_told_only_what_the_client_declared_and_we_carry() -> None:
    declared = caps(sampling="{}", roots='{"listChanged":true}', tasks="{}", experimental="{}", tools="{}")
    assert relayable(declared) == caps(sampling="{}", roots='{"listChanged":true}')
    assert relayable({}) == {}


@pytest.mark.parametrize(
    ("declared", "method", "params", "allowed"),
    [
        ({}, "roots/list", {}, False),
        (caps(roots="{}"), "roots/list", {}, True),
        (caps(sampling="{}"), "sampling/createMessage", {}, True),
        (caps(sampling="{}"), "sampling/createMessage", caps(tools="[]"), False),
        (caps(sampling='{"tools":{}}'), "sampling/createMessage", caps(tools="[]"), True),
        (caps(elicitation="{}"), "elicitation/create", {}, True),
        (caps(elicitation="{}"), "elicitation/create", caps(mode='"url"'), False),
        (caps(elicitation='{"url":{}}'), "elicitation/create", caps(mode='"url"'), True),
        (caps(elicitation='{"url":{}}'), "elicitation/create", caps(mode='"form"'), False),
        (caps(elicitation='{"form":{},"url":{}}'), "elicitation/create", caps(mode='"form"'), True),
        (caps(roots="{}"), "tools/call", {}, False),
    ],
)
def test_a_client_is_asked_only_what_it_said_it_can_answer(
    declared: Fields, method: str, params: Fields, allowed: bool
) -> None:
    assert (may_ask(declared, method, params) is None) == allowed


def test_each_request_says_itself_which_era_it_is_of() -> None:
    assert era_of("tools/list", None) is Era.HANDSHAKE
    assert era_of("tools/list", caps(progressToken="1")) is Era.HANDSHAKE
    assert era_of("server/discover", None) is Era.MODERN
    assert (
        era_of("tools/list", {"io.modelcontextprotocol/protocolVersion": Raw(b'"2026-07-28"')}) is Era.MODERN
    )


@pytest.mark.requirement("S1-029", "S1-010")
def test_our_hello_has_a_version_capabilities_and_our_name() -> None:
    params = hello(caps(roots="{}"), "2025-06-18", "plait", "1.0")
    assert params == {
        "protocolVersion": Raw(b'"2025-06-18"'),
        "capabilities": Raw(b'{"roots":{}}'),
        "clientInfo": Raw(b'{"name":"plait","version":"1.0"}'),
    }


def test_what_is_kept_does_not_hold_its_whole_message() -> None:
    message = b'{"a":{"b":1},"rest":"%b"}' % (b"x" * 100_000)
    kept = fields_of(Raw(message[5:12]))
    assert kept == {"b": Raw(b"1")}
