"""What a user may write, and every shape of file that we read."""

from plait.config.command import CommandNotFound, resolve_command
from plait.config.environment import server_environment
from plait.config.load import load
from plait.config.model import (
    AuditSettings,
    CommandSettings,
    Config,
    HttpServer,
    ParameterSetting,
    PolicySettings,
    PythonServer,
    ResultSettings,
    RuleSetting,
    Server,
    ServerSettings,
    Settings,
    StdioServer,
    UrlSettings,
    is_prefix,
)
from plait.config.problem import ConfigFileError, Problem, Where

__all__ = [
    "AuditSettings",
    "CommandNotFound",
    "CommandSettings",
    "Config",
    "ConfigFileError",
    "HttpServer",
    "ParameterSetting",
    "PolicySettings",
    "Problem",
    "PythonServer",
    "ResultSettings",
    "RuleSetting",
    "Server",
    "ServerSettings",
    "Settings",
    "StdioServer",
    "UrlSettings",
    "Where",
    "is_prefix",
    "load",
    "resolve_command",
    "server_environment",
]
