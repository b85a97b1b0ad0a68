"""A fault of a server, told to the client that waits."""

import pytest

from plait.errors import UpstreamBroken, UpstreamError, UpstreamTimeout, UpstreamUnavailable
from plait.routing.faults import told
from plait.wire.spec import INTERNAL_ERROR
from seams import error_of, result_of

FAULTS = [
    (UpstreamUnavailable("server 'fs' stopped"), "unavailable"),
    (UpstreamTimeout("server 'fs' did not answer"), "timeout"),
    (UpstreamBroken("server 'fs' answered nonsense"), "broken"),
]


@pytest.mark.requirement("S0-19")
@pytest.mark.parametrize(("error", "kind"), FAULTS)
def test_of_a_tool_call_it_is_a_result_that_a_model_can_read(error: UpstreamError, kind: str) -> None:
    assert result_of(told("tools/call", "fs", error)) == {
        "content": [{"type": "text", "text": str(error)}],
        "isError": True,
        "_meta": {"plait/fault": {"kind": kind, "server": "fs"}},
    }


@pytest.mark.parametrize(("error", "kind"), FAULTS)
@pytest.mark.parametrize("method", ["prompts/get", "resources/read", "completion/complete"])
def test_of_anything_else_it_is_an_error_with_the_same_words(
    method: str, error: UpstreamError, kind: str
) -> None:
    assert error_of(told(method, "fs", error)) == {
        "code": INTERNAL_ERROR,
        "message": str(error),
        "data": {"kind": kind, "server": "fs"},
    }
