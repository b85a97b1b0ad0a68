"""What the pinned servers and their resources are called."""

from typing import Protocol
from urllib.parse import quote, unquote

from msgspec import Struct

from plait.routing.naming import MountPrefix


class ResourceTemplate(Struct, frozen=True):
    """A family of resources, one for each value of the single variable in `text`."""

    text: str

    def __str__(self) -> str:
        return self.text

    def uri(self, **values: str) -> str:
        """`template.uri(server="fs")`."""
        return self.text.format_map({name: quote(value, safe="()") for name, value in values.items()})

    def match(self, uri: str) -> str | None:
        """The value that makes this URI of the template; None if there is none."""
        before, _, rest = self.text.partition("{")
        after = rest.partition("}")[2]
        if not uri.startswith(before) or not uri.endswith(after):
            return None
        middle = uri[len(before) : len(uri) - len(after)]
        return unquote(middle) if middle and "/" not in middle else None


class Named(Protocol):
    @property
    def prefix(self) -> MountPrefix: ...
    @property
    def name(self) -> str: ...


def label(server: Named) -> str:
    """What a server is called here: its prefix; its name in brackets, which no prefix has, without one."""
    return str(server.prefix) or f"({server.name})"
