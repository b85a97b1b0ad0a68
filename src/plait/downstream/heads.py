"""Do the headers of a modern POST say what its body says? Asked before anything is done about it.

"Any server that processes the body MUST reject" a request whose headers and body disagree, with 400 and
-32020 (2026-07-28, basic/transports). What is wrong comes back as the body of an error.
"""

from collections.abc import Mapping

from msgspec import MsgspecError, Raw
from msgspec.json import decode

from plait.session.eras.errors import code_of
from plait.session.eras.stamp import Stamp, read_stamp
from plait.session.negotiation import fields_of
from plait.wire.envelope import Fields, error_body
from plait.wire.header_schema import ANNOTATION, BadAnnotation, check_parameters, mirrored
from plait.wire.headers import METHOD_HEADER, VERSION_HEADER, Misheaded, Pairs, check, gather
from plait.wire.modern import HEADER_MISMATCH, SPOKEN, UNSUPPORTED_VERSION

Given = Mapping[str, str]
"""The headers that repeat the body, as `gather` gives them."""


def read_head(pairs: Pairs) -> Given | Raw:
    """Those of the headers that repeat the body, each of them once."""
    try:
        return gather(pairs)
    except Misheaded as problem:
        return _mismatch(problem)


def read_request(given: Given, method: str, params: Fields) -> Stamp | Raw:
    """Who asks. The order of the checks is that of the official SDK: first the stamp, then whether the
    headers repeat it, and only then whether its revision is one that we speak."""
    meta = fields_of(params.get("_meta"))
    stamp = read_stamp(method, meta)
    if isinstance(stamp, Raw) and code_of(stamp) != UNSUPPORTED_VERSION:
        return stamp
    try:
        check(given, method, params, meta)
    except Misheaded as problem:
        return _mismatch(problem)
    return stamp


def check_notification(given: Given, method: str) -> Raw | None:
    """Which headers a notification has is left open; what it has must be right."""
    version = given.get(VERSION_HEADER.lower())
    if version is not None and version not in SPOKEN:
        data = {"supported": SPOKEN, "requested": version}
        return error_body(UNSUPPORTED_VERSION, f"Unsupported protocol version: {version[:40]}", data)
    if given.get(METHOD_HEADER.lower(), method) != method:
        return _mismatch(f"the header {METHOD_HEADER} does not say what the body says")
    return None


def check_arguments(given: Given, schema: Raw | None, arguments: Raw | None) -> Raw | None:
    """Do the `Mcp-Param-*` headers repeat the arguments that a tool's schema says they must?"""
    if schema is None or ANNOTATION.encode() not in bytes(schema):
        return None
    try:
        said = {} if arguments is None else decode(arguments)
        if isinstance(said, dict):
            check_parameters(mirrored(decode(schema)), said, given)
    except Misheaded as problem:
        return _mismatch(problem)
    except (BadAnnotation, MsgspecError, UnicodeDecodeError, RecursionError):
        pass  # clients over HTTP must not use such a tool; arguments that are none are refused elsewhere
    return None


def _mismatch(problem: object) -> Raw:
    return error_body(HEADER_MISMATCH, f"Header mismatch: {problem}")
