"""The tools we ship, as one provider: files, a shell, the web, a memory, and an echo."""

import contextlib
from collections.abc import AsyncIterator, Mapping

from plait.config.folders import state_folder
from plait.config.model import Settings
from plait.outbound.client import HttpClient
from plait.pipeline.configured import command_policy, url_policy, workspace_of
from plait.providers.function import FunctionProvider
from plait.providers.tools.echo import echo
from plait.providers.tools.files import FileTools
from plait.providers.tools.memory import MemoryTools
from plait.providers.tools.shell import ShellTools
from plait.providers.tools.web import WebTools
from plait.providers.tools.workspace import Workspace
from plait.upstream.process import Guardian

NAMESPACE = "builtin"
READ_ONLY = frozenset({"read_file", "list_directory", "search_files", "memory_read", "memory_search", "echo"})
"""Those that change nothing, here or elsewhere (a fetch may be a DELETE): all that is offered to clients over
HTTP that did not say who they are."""


@contextlib.asynccontextmanager
async def builtin_tools(
    settings: Settings, environ: Mapping[str, str], guardian: Guardian
) -> AsyncIterator[FunctionProvider]:
    """Everything opened for them is closed with them."""
    workspace = workspace_of(settings)
    async with contextlib.AsyncExitStack() as stack:
        client = HttpClient(url_policy(settings))
        stack.push_async_callback(client.aclose)
        memory = MemoryTools(state_folder(environ))
        stack.push_async_callback(memory.aclose)
        files = FileTools(Workspace(workspace))
        shell = ShellTools(workspace, command_policy(settings), guardian)
        yield FunctionProvider(
            NAMESPACE,
            [*files.functions(), shell.exec_shell, WebTools(client).web_fetch, *memory.functions(), echo],
        )
