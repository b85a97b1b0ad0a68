"""The tools of the conformance suite's reference server that ask their client: by request, and by round."""

from collections.abc import Mapping

from mcp.server.mcpserver import Context, MCPServer
from mcp.types import (
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingCapability,
    SamplingMessage,
    TextContent,
)

Schema = dict[str, object]

CHOICES = ["option1", "option2", "option3"]
TITLED: list[Schema] = [
    {"const": "value1", "title": "First Option"},
    {"const": "value2", "title": "Second Option"},
    {"const": "value3", "title": "Third Option"},
]
DEFAULTS: dict[str, Schema] = {
    "name": {"type": "string", "description": "User name", "default": "John Doe"},
    "age": {"type": "integer", "description": "User age", "default": 30},
    "score": {"type": "number", "description": "User score", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "description": "Verified or not", "default": True},
}
ENUMS: dict[str, Schema] = {
    "untitledSingle": {"type": "string", "enum": CHOICES},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": CHOICES}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
USER: dict[str, Schema] = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}


def form(properties: Mapping[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def sampling(text: str, tokens: int) -> CreateMessageRequestParams:
    message = SamplingMessage(role="user", content=TextContent(text=text))
    return CreateMessageRequestParams(messages=[message], max_tokens=tokens)


def text_of(answer: CreateMessageResult) -> str:
    return answer.content.text if isinstance(answer.content, TextContent) else ""


# ---- by request: the handshake era


def add_requests(server: MCPServer) -> None:
    @server.tool(structured_output=False)
    async def test_sampling(prompt: str, context: Context) -> str:
        """Has the client's model answer."""
        params = sampling(prompt, 100)
        answer = await context.session.create_message(
            params.messages, max_tokens=params.max_tokens, related_request_id=context.request_id
        )
        return f"LLM response: {text_of(answer)}"

    @server.tool(structured_output=False)
    async def test_elicitation(message: str, context: Context) -> str:
        """Asks the user."""
        return await _ask(context, "User response", message, form(USER, "username", "email"))

    @server.tool(structured_output=False)
    async def test_elicitation_sep1034_defaults(context: Context) -> str:
        """Asks with default values."""
        return await _ask(context, "Elicitation completed", "Please check these values", form(DEFAULTS))

    @server.tool(structured_output=False)
    async def test_elicitation_sep1330_enums(context: Context) -> str:
        """Asks with every kind of choice."""
        return await _ask(context, "Elicitation completed", "Please choose", form(ENUMS))


async def _ask(context: Context, opening: str, message: str, schema: Schema) -> str:
    answer = await context.session.elicit_form(message, schema, context.request_id)
    return f"{opening}: action={answer.action}, content={answer.content}"


# ---- by round: the modern era


def question(message: str, field: str, kind: str = "string") -> ElicitRequest:
    schema = form({field: {"type": kind}}, field)
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def accepted(context: Context, key: str, field: str) -> object:
    """What the user filled in, or None if this answer is missing or is no answer to this question."""
    answer = (context.input_responses or {}).get(key)
    if not isinstance(answer, ElicitResult) or answer.action != "accept":
        return None
    return (answer.content or {}).get(field)


def add_rounds(server: MCPServer) -> None:
    add_single_questions(server)
    add_states(server)
    add_several_questions(server)


def add_single_questions(server: MCPServer) -> None:
    @server.tool(structured_output=False)
    def test_input_required_result_elicitation(context: Context) -> str | InputRequiredResult:
        """Asks for a name."""
        name = accepted(context, "user_name", "name")
        if name is None:
            return InputRequiredResult(input_requests={"user_name": question("What is your name?", "name")})
        return f"Hello, {name}!"

    @server.tool(structured_output=False)
    def test_streaming_elicitation(context: Context) -> str | InputRequiredResult:
        """Asks in its answer, never on the stream."""
        if accepted(context, "confirm", "ok") is None:
            return InputRequiredResult(input_requests={"confirm": question("Go on?", "ok", "boolean")})
        return "confirmed"

    @server.tool(structured_output=False)
    def test_input_required_result_sampling(context: Context) -> str | InputRequiredResult:
        """Asks the client's model."""
        answer = (context.input_responses or {}).get("capital_question")
        if not isinstance(answer, CreateMessageResult):
            request = CreateMessageRequest(params=sampling("What is the capital of France?", 100))
            return InputRequiredResult(input_requests={"capital_question": request})
        return text_of(answer)

    @server.tool(structured_output=False)
    def test_input_required_result_list_roots(context: Context) -> str | InputRequiredResult:
        """Asks for the client's roots."""
        answer = (context.input_responses or {}).get("client_roots")
        if not isinstance(answer, ListRootsResult):
            return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
        return "roots: " + ", ".join(str(root.uri) for root in answer.roots)


def add_states(server: MCPServer) -> None:
    """The tools that give the client a state to bring back. The SDK seals it and refuses what was changed."""

    @server.tool(structured_output=False)
    def test_input_required_result_request_state(context: Context) -> str | InputRequiredResult:
        """Expects its state back."""
        return _confirm(context)

    @server.tool(structured_output=False)
    def test_input_required_result_tampered_state(context: Context) -> str | InputRequiredResult:
        """Expects its state back as it was."""
        return _confirm(context)

    @server.tool(structured_output=False)
    def test_input_required_result_multi_round(context: Context) -> str | InputRequiredResult:
        """Asks twice."""
        name, colour = accepted(context, "step1", "name"), accepted(context, "step2", "color")
        if context.request_state is None or (name is None and colour is None):
            first = question("Step 1: What is your name?", "name")
            return InputRequiredResult(input_requests={"step1": first}, request_state="first")
        if colour is None:
            second = question("Step 2: What is your favorite color?", "color")
            return InputRequiredResult(input_requests={"step2": second}, request_state=f"second:{name}")
        return f"{context.request_state.partition(':')[2]} likes {colour}"


def _confirm(context: Context) -> str | InputRequiredResult:
    if context.request_state != "waiting" or accepted(context, "confirm", "ok") is None:
        asked = question("Please confirm", "ok", "boolean")
        return InputRequiredResult(input_requests={"confirm": asked}, request_state="waiting")
    return "state-ok"


def add_several_questions(server: MCPServer) -> None:
    @server.tool(structured_output=False)
    def test_input_required_result_multiple_inputs(context: Context) -> str | InputRequiredResult:
        """Asks three questions at once."""
        answers = context.input_responses or {}
        roots, greeting = answers.get("client_roots"), answers.get("greeting")
        name = accepted(context, "user_name", "name")
        if name and isinstance(greeting, CreateMessageResult) and isinstance(roots, ListRootsResult):
            return f"{text_of(greeting)} {name} ({len(roots.roots)} roots)"
        return InputRequiredResult(
            input_requests={
                "user_name": question("What is your name?", "name"),
                "greeting": CreateMessageRequest(params=sampling("Generate a greeting", 50)),
                "client_roots": ListRootsRequest(),
            },
            request_state="three questions",
        )

    @server.tool(structured_output=False)
    def test_input_required_result_capabilities(context: Context) -> str | InputRequiredResult:
        """Asks only what the client can answer."""
        if context.input_responses:
            return "answered"
        if context.session.check_client_capability(ClientCapabilities(sampling=SamplingCapability())):
            request = CreateMessageRequest(params=sampling("Say something", 50))
            return InputRequiredResult(input_requests={"sampled": request})
        return InputRequiredResult(input_requests={"asked": question("What is your name?", "name")})
