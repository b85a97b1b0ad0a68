"""What a user may write, and every shape of file that we read."""

from plait.config.command import CommandNotFound, resolve_command
from plait.config.environment import server_environment
from plait.config.load import load
from plait.config.model import Config, HttpServer, ServerSettings, Settings, StdioServer, is_prefix
from plait.config.problem import ConfigFileError, Problem, Where

__all__ = [
    "CommandNotFound",
    "Config",
    "ConfigFileError",
    "HttpServer",
    "Problem",
    "ServerSettings",
    "Settings",
    "StdioServer",
    "Where",
    "is_prefix",
    "load",
    "resolve_command",
    "server_environment",
]
