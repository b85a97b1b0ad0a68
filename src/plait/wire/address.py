"""Read the address off a request and write a new one; the rest stays unread."""

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType
from msgspec.json import Decoder

from plait.errors import RemoteProtocolError
from plait.wire.envelope import Fields, encode, open_fields
from plait.wire.spec import ADDRESS_FIELD, INVALID_PARAMS

read_text = Decoder(str).decode


class Reference(Struct, gc=False):
    """What `completion/complete` completes: a prompt by its name, or a resource template."""

    type: str
    name: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET


_read_reference = Decoder(Reference).decode


def read_address(method: str, params: Fields) -> str:
    """Whose request is it? Empty for methods that are nobody's in particular."""
    field = ADDRESS_FIELD.get(method)
    if field is None:
        return ""
    try:
        return read_text(params[field])
    except (KeyError, MsgspecError, UnicodeDecodeError):
        raise RemoteProtocolError(f"{method} needs a string {field!r}", INVALID_PARAMS) from None


def readdress(method: str, params: Fields, address: Raw) -> Fields:
    """The same params under another address. Unknown fields survive, in order."""
    return {**params, ADDRESS_FIELD[method]: address}


def read_reference(params: Fields) -> Reference:
    try:
        reference = _read_reference(params["ref"])
    except (KeyError, MsgspecError, UnicodeDecodeError):
        raise RemoteProtocolError("completion/complete needs a 'ref'", INVALID_PARAMS) from None
    wanted = {"ref/prompt": reference.name, "ref/resource": reference.uri}.get(reference.type, UNSET)
    if wanted is UNSET:
        raise RemoteProtocolError(
            "completion/complete needs a 'ref' of type ref/prompt with a name, or ref/resource with a uri",
            INVALID_PARAMS,
        )
    return reference


def rename_reference(params: Fields, name: Raw) -> Fields:
    """The same completion request, for a prompt under another name."""
    reference = open_fields(params["ref"])
    return {**params, "ref": as_raw({**reference, "name": name})}


def as_raw(value: object) -> Raw:
    """Any plain value as a payload of ours."""
    return Raw(encode(value))
