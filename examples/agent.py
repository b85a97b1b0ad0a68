"""An agent: servers mounted in its own process, a model that calls their tools, and the loop between them.

`python examples/agent.py` runs as it is. The model is a stand-in that follows a script, so that there is
no network and no key; to use a real one, put a call of its API in place of `Model.create`.
"""

import asyncio

from plait import Client, Compositor, FunctionProvider, MountPrefix, build_mcp_function

NOTES = MountPrefix("notes")
Message = dict[str, object]


class Notes:
    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    async def write(self, title: str, text: str) -> str:
        """Keep a note."""
        self._texts[title] = text
        return f"kept {title!r}"

    async def read(self, title: str) -> str:
        """Read a note."""
        return self._texts.get(title, f"there is no note {title!r}")


class Model:
    """A STAND-IN for a model: it says what its script says, in the form of Anthropic's Messages API."""

    def __init__(self) -> None:
        write, read = (build_mcp_function(NOTES, tool) for tool in ("write", "read"))
        self._script: list[list[Message]] = [
            [
                {
                    "type": "tool_use",
                    "id": "1",
                    "name": write,
                    "input": {"title": "hair", "text": "three strands"},
                }
            ],
            [{"type": "tool_use", "id": "2", "name": read, "input": {"title": "hair"}}],
            [{"type": "text", "text": "A plait has three strands."}],
        ]

    async def create(self, messages: list[Message], tools: list[Message]) -> list[Message]:
        assert {tool["name"] for tool in tools} >= {build_mcp_function(NOTES, "read")}
        return self._script.pop(0)


async def run(client: Client, model: Model, task: str) -> str:
    """Until the model asks for no tool any more; what it says then."""
    tools = await client.schemas("anthropic")
    messages: list[Message] = [{"role": "user", "content": task}]
    while True:
        said = await model.create(messages, tools)
        messages.append({"role": "assistant", "content": said})
        results: list[Message] = []
        for use in [block for block in said if block["type"] == "tool_use"]:
            arguments = use["input"]
            assert isinstance(arguments, dict)
            text = await client.execute(str(use["name"]), arguments)
            print(f"{use['name']}: {text}")
            results.append(
                {"type": "tool_result", "tool_use_id": use["id"], "content": text, "is_error": text.is_error}
            )
        if not results:
            return "".join(str(block["text"]) for block in said)
        if news := client.notifications.render():  # what has changed behind us, once per turn
            results.append({"type": "text", "text": news})
        messages.append({"role": "user", "content": results})


async def main() -> None:
    notes = Notes()
    async with Compositor() as compositor:
        await compositor.mount(NOTES, FunctionProvider(NOTES, [notes.write, notes.read]))
        async with Client(compositor) as client:
            print(await run(client, Model(), "How many strands has a plait? Keep a note of it."))


if __name__ == "__main__":
    asyncio.run(main())
