"""Every MCP server and tool you have, behind one endpoint.

The path of a message, package by package:

    client -> downstream -> session -> pipeline -> routing -> mounts, upstream -> server
              bytes in      rules      guards      whose?     lives, bytes out

`wire` is the vocabulary they share, `config` what a user may write, `providers` the servers that live
in this process; `delegation` hands tasks on to models. `assemble` makes a running `Compositor` of a
configuration; `cli` is the command.

Public names are imported when they are first used: `import plait` costs nothing.
"""

from typing import TYPE_CHECKING

from plait.version import VERSION

if TYPE_CHECKING:
    from plait.client import Client as Client
    from plait.compositor import Compositor as Compositor
    from plait.compositor import CompositorState as CompositorState
    from plait.config.delegation import DelegationConfig as DelegationConfig
    from plait.config.delegation import DelegationRule as DelegationRule
    from plait.config.delegation import DelegationTarget as DelegationTarget
    from plait.config.model import Config as Config
    from plait.config.model import HttpServer as HttpServer
    from plait.config.model import ServerSettings as ServerSettings
    from plait.config.model import Settings as Settings
    from plait.config.model import StdioServer as StdioServer
    from plait.config.model import StreamSettings as StreamSettings
    from plait.delegation.claude import ClaudeDelegator as ClaudeDelegator
    from plait.delegation.engine import DelegationEngine as DelegationEngine
    from plait.delegation.engine import estimate_complexity as estimate_complexity
    from plait.delegation.tool import DelegateTaskTool as DelegateTaskTool
    from plait.errors import ConfigError as ConfigError
    from plait.errors import DelegationFailed as DelegationFailed
    from plait.errors import ExecutionFailed as ExecutionFailed
    from plait.errors import LifecycleError as LifecycleError
    from plait.errors import NotFound as NotFound
    from plait.errors import PermissionDenied as PermissionDenied
    from plait.errors import PlaitError as PlaitError
    from plait.errors import ToolError as ToolError
    from plait.mounts.mount import Mount as Mount
    from plait.mounts.state import MountEvent as MountEvent
    from plait.mounts.state import MountState as MountState
    from plait.notices import NotificationsBuffer as NotificationsBuffer
    from plait.outbound.urls import UrlPolicy as UrlPolicy
    from plait.pipeline.audit import AuditLog as AuditLog
    from plait.pipeline.commands import CommandPolicy as CommandPolicy
    from plait.pipeline.compose import Layer as Layer
    from plait.pipeline.limits import MAX_TOOL_RESULT_BYTES as MAX_TOOL_RESULT_BYTES
    from plait.pipeline.limits import ResultGuard as ResultGuard
    from plait.pipeline.middleware import Middleware as Middleware
    from plait.pipeline.permissions import PermissionFilter as PermissionFilter
    from plait.pipeline.policy import SecurityGuard as SecurityGuard
    from plait.pipeline.rules import Rule as Rule
    from plait.pipeline.rules import Rules as Rules
    from plait.providers.builtin import BuiltinToolProvider as BuiltinToolProvider
    from plait.providers.composite import CompositeToolProvider as CompositeToolProvider
    from plait.providers.context import ToolContext as ToolContext
    from plait.providers.function import FunctionProvider as FunctionProvider
    from plait.providers.provider import ToolProvider as ToolProvider
    from plait.providers.stream_events import StreamEvent as StreamEvent
    from plait.providers.streaming import StreamingToolProvider as StreamingToolProvider
    from plait.routing.naming import MCPMountPrefix as MCPMountPrefix
    from plait.routing.naming import MountPrefix as MountPrefix
    from plait.routing.naming import build_mcp_function as build_mcp_function
    from plait.session.exchange import Exchange as Exchange
    from plait.session.exchange import Handler as Handler
    from plait.session.exchange import Reply as Reply
    from plait.session.exchange import Verdict as Verdict
    from plait.session.exchange import refuse as refuse
    from plait.shell import McpServerShell as McpServerShell
    from plait.upstream.client import McpClient as McpClient
    from plait.upstream.handshake import McpSession as McpSession
    from plait.upstream.http import HttpTransport as HttpTransport
    from plait.upstream.mock import MockTransport as MockTransport
    from plait.upstream.stdio import StdioTransport as StdioTransport
    from plait.wire.content import error_result as error_result
    from plait.wire.content import extract_tool_result as extract_tool_result
    from plait.wire.tools import CallToolResult as CallToolResult
    from plait.wire.tools import ContentBlock as ContentBlock
    from plait.wire.tools import ToolCallRequest as ToolCallRequest
    from plait.wire.tools import ToolDefinition as ToolDefinition

__version__ = VERSION

_HOMES = {
    "Client": "plait.client",
    "Compositor": "plait.compositor",
    "CompositorState": "plait.compositor",
    "Config": "plait.config.model",
    "HttpServer": "plait.config.model",
    "ServerSettings": "plait.config.model",
    "Settings": "plait.config.model",
    "StdioServer": "plait.config.model",
    "StreamSettings": "plait.config.model",
    "DelegationConfig": "plait.config.delegation",
    "DelegationRule": "plait.config.delegation",
    "DelegationTarget": "plait.config.delegation",
    "ClaudeDelegator": "plait.delegation.claude",
    "DelegationEngine": "plait.delegation.engine",
    "estimate_complexity": "plait.delegation.engine",
    "DelegateTaskTool": "plait.delegation.tool",
    "ConfigError": "plait.errors",
    "DelegationFailed": "plait.errors",
    "ExecutionFailed": "plait.errors",
    "LifecycleError": "plait.errors",
    "NotFound": "plait.errors",
    "PermissionDenied": "plait.errors",
    "PlaitError": "plait.errors",
    "ToolError": "plait.errors",
    "Mount": "plait.mounts.mount",
    "MountEvent": "plait.mounts.state",
    "MountState": "plait.mounts.state",
    "NotificationsBuffer": "plait.notices",
    "UrlPolicy": "plait.outbound.urls",
    "AuditLog": "plait.pipeline.audit",
    "CommandPolicy": "plait.pipeline.commands",
    "Layer": "plait.pipeline.compose",
    "MAX_TOOL_RESULT_BYTES": "plait.pipeline.limits",
    "ResultGuard": "plait.pipeline.limits",
    "Middleware": "plait.pipeline.middleware",
    "PermissionFilter": "plait.pipeline.permissions",
    "SecurityGuard": "plait.pipeline.policy",
    "Rule": "plait.pipeline.rules",
    "Rules": "plait.pipeline.rules",
    "BuiltinToolProvider": "plait.providers.builtin",
    "CompositeToolProvider": "plait.providers.composite",
    "ToolContext": "plait.providers.context",
    "FunctionProvider": "plait.providers.function",
    "ToolProvider": "plait.providers.provider",
    "StreamEvent": "plait.providers.stream_events",
    "StreamingToolProvider": "plait.providers.streaming",
    "MCPMountPrefix": "plait.routing.naming",
    "MountPrefix": "plait.routing.naming",
    "build_mcp_function": "plait.routing.naming",
    "Exchange": "plait.session.exchange",
    "Handler": "plait.session.exchange",
    "Reply": "plait.session.exchange",
    "Verdict": "plait.session.exchange",
    "refuse": "plait.session.exchange",
    "McpServerShell": "plait.shell",
    "McpClient": "plait.upstream.client",
    "McpSession": "plait.upstream.handshake",
    "HttpTransport": "plait.upstream.http",
    "MockTransport": "plait.upstream.mock",
    "StdioTransport": "plait.upstream.stdio",
    "error_result": "plait.wire.content",
    "extract_tool_result": "plait.wire.content",
    "CallToolResult": "plait.wire.tools",
    "ContentBlock": "plait.wire.tools",
    "ToolCallRequest": "plait.wire.tools",
    "ToolDefinition": "plait.wire.tools",
}
"""Where each public name really lives."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"plait has no {name!r}")
    from importlib import import_module  # noqa: PLC0415  most programs never get here

    value: object = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
