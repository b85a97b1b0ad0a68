"""Errors from one era to the other."""

import pytest
from msgspec.json import decode

from plait.session.eras.errors import for_handshake, for_modern, lacks
from plait.wire.address import as_raw
from plait.wire.envelope import Fields, error_body


def caps(**more: object) -> Fields:
    return {key: as_raw(value) for key, value in more.items()}


def test_a_resource_that_is_not_there_is_bad_params_to_a_modern_client() -> None:
    error = decode(for_modern(error_body(-32002, "Resource not found", {"uri": "x:"}), {}))
    assert error == {"code": -32602, "message": "Resource not found", "data": {"uri": "x:"}}


@pytest.mark.parametrize("code", [0, -1, -32000, -32001, -32019, -32800, -32020, -32022, -32042])
def test_a_code_that_means_nothing_to_a_modern_client_is_an_internal_error(code: int) -> None:
    error = decode(for_modern(error_body(code, "what it said", {"a": 1}), {}))
    assert error["code"] == -32603
    assert error["message"] == "what it said"
    assert error["data"] == {"upstream": code, "data": {"a": 1}}


@pytest.mark.parametrize("code", [-32601, -32602, -32603, -32700, 7, -31999, -32023])
def test_every_other_error_passes_to_the_byte(code: int) -> None:
    error = error_body(code, "m", {"k": [1]})
    assert for_modern(error, {}) is error
    assert for_handshake("tools/call", error).error is error


def test_a_missing_capability_is_the_clients_only_if_it_lacks_it() -> None:
    error = error_body(-32021, "m", {"requiredCapabilities": {"elicitation": {"url": {}}}})
    assert for_modern(error, {}) is error
    assert for_modern(error, caps(elicitation={})) is error
    assert decode(for_modern(error, caps(elicitation={"url": {}})))["code"] == -32603


def test_an_empty_elicitation_means_forms() -> None:
    assert not lacks(caps(elicitation={}), caps(elicitation={"form": {}}))
    assert lacks(caps(elicitation={"url": {}}), caps(elicitation={"form": {}}))
    assert lacks(caps(), caps(roots={}))


def test_what_a_handshake_client_cannot_mend_it_is_told_in_words() -> None:
    error = error_body(-32021, "needs you", {"requiredCapabilities": {"sampling": {}}})
    told = for_handshake("tools/call", error).result
    assert told is not None
    assert decode(told)["isError"] is True
    assert '"sampling"' in decode(told)["content"][0]["text"]
    refused = for_handshake("prompts/get", error).error
    assert refused is not None
    assert decode(refused)["code"] == -32603
