"""One tool that answers with what it was given: to see that everything in between works."""

from typing import Annotated


async def echo(text: Annotated[str, "What to answer with."]) -> str:
    """Answers with the text it is given."""
    return text
