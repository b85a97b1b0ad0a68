"""The resources, prompts and completions of the conformance suite's reference server."""

import base64
import json

from mcp.server.context import ServerRequestContext
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import (
    Completion,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    RequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextResourceContents,
    UnsubscribeRequestParams,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="


def picture() -> ImageContent:
    return ImageContent(data=PIXEL, mime_type="image/png")


def add_resources(server: MCPServer) -> None:
    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        """A text."""
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        """A picture."""
        return base64.b64decode(PIXEL)

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:
        """Something for every id."""
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})

    @server.resource("test://watched-resource", mime_type="text/plain")
    def watched() -> str:
        """A text to subscribe to."""
        return "This is a watched resource."


def add_prompts(server: MCPServer) -> None:
    @server.prompt()
    def test_simple_prompt() -> list[UserMessage]:
        """Without arguments."""
        return [UserMessage("This is a simple prompt for testing.")]

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> list[UserMessage]:
        """With two arguments."""
        return [UserMessage(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")]

    @server.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 (the suite's)
        """With a resource in it."""
        text = "Embedded resource content for testing."
        resource = TextResourceContents(uri=resourceUri, mime_type="text/plain", text=text)
        after = "Please process the embedded resource above."
        return [UserMessage(EmbeddedResource(resource=resource)), UserMessage(after)]

    @server.prompt()
    def test_prompt_with_image() -> list[UserMessage]:
        """With a picture in it."""
        return [UserMessage(picture()), UserMessage("Please analyze the image above.")]

    @server.prompt()
    def test_input_required_result_prompt(context: Context) -> list[UserMessage] | InputRequiredResult:
        """Asks before it answers."""
        answer = (context.input_responses or {}).get("user_context")
        if isinstance(answer, ElicitResult) and answer.content:
            return [UserMessage(f"Prompt with context: {answer.content['context']}")]
        return InputRequiredResult(input_requests={"user_context": _question()})


def _question() -> ElicitRequest:
    schema = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
    message = "What context should the prompt use?"
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def add_requests(server: MCPServer) -> None:
    """What the suite asks for besides, and the SDK leaves to the server's author."""

    async def accept(context: ServerRequestContext[object], params: RequestParams) -> EmptyResult:
        return EmptyResult()

    lowlevel = server._lowlevel_server
    lowlevel.add_request_handler("logging/setLevel", SetLevelRequestParams, accept)
    lowlevel.add_request_handler("resources/subscribe", SubscribeRequestParams, accept)
    lowlevel.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, accept)

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(ref: object, argument: object, context: object) -> Completion:
        return Completion(values=["paris", "park", "party"], total=3, has_more=False)
