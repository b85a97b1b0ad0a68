"""A client that remembers what it was told and asked, and one side of a comparison."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import mcp_types as types
from mcp import Client
from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from gateway import PATIENCE

Params = dict[str, object]
Listed = TypeVar("Listed")

ANSWER = types.CreateMessageResult(
    role="assistant",
    content=types.TextContent(type="text", text="Sampled 😀"),
    model="a-model",
    stop_reason="endTurn",
)


class Witness:
    """What the client can do is what it is given; each answers the same way every time."""

    def __init__(
        self,
        *,
        samples: bool = False,
        forms: types.ElicitResult | None = None,
        roots: list[types.Root] | None = None,
    ) -> None:
        self.samples = samples
        self.forms = forms
        self.roots = roots
        self.told: list[tuple[str, Params]] = []
        """Notifications, by method."""
        self.asked: list[tuple[str, Params]] = []
        """Questions of servers, by method."""
        self._news = asyncio.Event()

    # ---- what the SDK calls

    async def hear(self, message: IncomingMessage) -> None:
        if isinstance(message, Exception):
            raise AssertionError("the client could not read a message") from message
        self.told.append((message.method, dump(message.params) if message.params is not None else {}))
        self._stir()

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        self._ask("sampling/createMessage", dump(params))
        return ANSWER

    async def elicit(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        self._ask("elicitation/create", dump(params))
        assert self.forms is not None
        return self.forms

    async def list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        self._ask("roots/list", {})
        return types.ListRootsResult(roots=self.roots or [])

    def _ask(self, method: str, params: Params) -> None:
        self.asked.append((method, params))
        self._stir()

    def _stir(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # ---- what tests wait for

    async def hears(self, method: str, wanted: Callable[[Params], bool] = lambda _: True) -> Params:
        """The first notification of this kind that is wanted; it is then forgotten."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for index, (name, params) in enumerate(self.told):
                    if name == method and wanted(params):
                        del self.told[index]
                        return params
                await self._news.wait()


class Side:
    """One of two ways to the same server: directly, where names are its own, or behind plait."""

    def __init__(self, client: Client, witness: Witness, prefix: str) -> None:
        self.client = client
        self.witness = witness
        self.prefix = prefix

    def name(self, native: str) -> str:
        return f"{self.prefix}__{native}" if self.prefix else native

    async def call(self, tool: str, arguments: Mapping[str, object] | None = None) -> object:
        """The result of a tool, or its error."""
        try:
            return dump(await self.client.call_tool(self.name(tool), dict(arguments or {})))
        except MCPError as error:
            return dump(error.error)

    async def prompt(self, name: str, arguments: dict[str, str] | None = None) -> object:
        try:
            return dump(await self.client.get_prompt(self.name(name), arguments))
        except MCPError as error:
            return dump(error.error)

    async def read(self, uri: str) -> object:
        try:
            return dump(await self.client.read_resource(uri))
        except MCPError as error:
            return dump(error.error)

    async def lists(self, scheme: str) -> Params:
        """All it lists, by the names it has there itself, and its resources, which have this scheme."""
        client = self.client
        tools = await _or(types.ListToolsResult(tools=[]), client.list_tools())
        prompts = await _or(types.ListPromptsResult(prompts=[]), client.list_prompts())
        resources = await _or(types.ListResourcesResult(resources=[]), client.list_resources())
        nothing = types.ListResourceTemplatesResult(resource_templates=[])
        templates = await _or(nothing, client.list_resource_templates())
        return {
            "tools": self._own([dump(tool) for tool in tools.tools]),
            "prompts": self._own([dump(prompt) for prompt in prompts.prompts]),
            "resources": [dump(item) for item in resources.resources if item.uri.startswith(scheme)],
            "templates": [
                dump(item) for item in templates.resource_templates if item.uri_template.startswith(scheme)
            ],
        }

    def _own(self, items: list[Params]) -> list[Params]:
        """The items of this server, with our prefix taken off their names again."""
        start = self.name("")
        own = [item for item in items if str(item["name"]).startswith(start)]
        return [{**item, "name": str(item["name"]).removeprefix(start)} for item in own]


async def _or(nothing: Listed, listing: Awaitable[Listed]) -> Listed:
    """A server without such a list has an empty one."""
    try:
        return await listing
    except MCPError as error:
        if error.code != types.METHOD_NOT_FOUND:
            raise
        return nothing


def dump(model: BaseModel) -> Params:
    """What was on the wire, as far as the SDK knows it."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)
