"""One tool that answers with what it was given: to see that everything in between works."""

from typing import Annotated

from plait.providers.function import FunctionProvider


async def echo(text: Annotated[str, "What to answer with."]) -> str:
    """Answers with the text it is given."""
    return text


class EchoProvider(FunctionProvider):
    def __init__(self) -> None:
        super().__init__("builtin", [echo])
