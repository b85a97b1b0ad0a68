"""The command `plait`: what may be typed, and which module does it.

Only what a command needs is imported when it runs: `plait mcp-server` is started by clients that
wait for it.
"""

import argparse
import importlib
import logging
import sys
from collections.abc import Sequence
from typing import NoReturn

from plait.cli.audit import add_parser as add_audit_parser
from plait.cli.exits import CONFIG, UNEXPECTED
from plait.cli.token import add_parser as add_token_parser
from plait.errors import ConfigError
from plait.version import VERSION

EPILOG = """\
Without -c, ./plait.json is read if it is there; otherwise the built-in tools are served.
Exit codes: 0 ok, 1 usage or unexpected, 4 unreachable, 5 tool error, 6 denied, 7 configuration error."""


class _Parser(argparse.ArgumentParser):
    """argparse leaves with 2 on a usage error; we promise 1."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(UNEXPECTED, f"plait: {message}\n")


def _common() -> _Parser:
    common = _Parser(add_help=False)
    common.add_argument(
        "-c",
        "--config",
        action="append",
        default=[],
        metavar="FILE",
        help="a configuration file (mcpServers JSON, comments allowed); may be given several times",
    )
    common.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="warning",
        help="how much of plait's own log goes to stderr (default: warning)",
    )
    common.add_argument("--debug", action="store_true", help="show tracebacks")
    return common


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="plait",
        description="Every MCP server and tool you have, behind one endpoint.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"plait {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    common = _common()
    looking = _Parser(add_help=False)
    looking.add_argument("--json", action="store_true", help="one JSON object on stdout, for programs")

    serving = commands.add_parser("up", parents=[common], help="serve clients over HTTP")
    serving.add_argument("--host", metavar="ADDRESS", help="where to listen (default: 127.0.0.1)")
    serving.add_argument("--port", type=port, metavar="PORT", help="(default: 7524; 0: any that is free)")
    commands.add_parser(
        "mcp-server", parents=[common], help="serve one client on stdin and stdout (what MCP clients start)"
    )
    listing = commands.add_parser("list", parents=[common, looking], help="the tools of every server")
    listing.add_argument(
        "pattern", nargs="?", default="*", metavar="PATTERN", help="only names like this (globs)"
    )
    calling = commands.add_parser("call", parents=[common, looking], help="call one tool")
    calling.add_argument("tool", metavar="TOOL", help="its exposed name, as `plait list` shows it")
    calling.add_argument("pairs", nargs="*", metavar="KEY=VALUE", help="arguments of the tool")
    calling.add_argument("--args", metavar="JSON", help="all arguments as one JSON object")
    _add_delegate(commands, [common, looking])
    checking = commands.add_parser("check", parents=[common, looking], help="is the configuration right?")
    checking.add_argument("--start", action="store_true", help="also start every server once")
    checking.add_argument("--strict", action="store_true", help="warnings count as errors")
    explaining = commands.add_parser(
        "explain", parents=[common, looking], help="why is a tool visible, hidden, renamed or withheld?"
    )
    explaining.add_argument("tool", metavar="TOOL")
    explaining.add_argument("--client", default="anonymous", metavar="NAME", help="as this client sees it")
    _add_policy(commands, [common, looking])
    commands.add_parser(
        "doctor", parents=[common, looking], help="what this machine has of what plait would use"
    )
    add_audit_parser(commands, common, looking)
    add_token_parser(commands, common, looking)
    return parser


def port(text: str) -> int:
    """What argparse calls a wrong one is the name of this function."""
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError(text)
    return number


def _add_delegate(commands: "argparse._SubParsersAction[_Parser]", parents: list[_Parser]) -> None:
    delegating = commands.add_parser("delegate", parents=parents, help="hand a task on to another model")
    delegating.add_argument("task", metavar="TASK", help="what is to be done, in one argument")
    delegating.add_argument(
        "--to", metavar="TARGET", help="claude, claude-flow, auto or local (default: as the rules say)"
    )
    delegating.add_argument("--dry-run", action="store_true", help="only say who would do it, and why")


def _add_policy(commands: "argparse._SubParsersAction[_Parser]", parents: list[_Parser]) -> None:
    policy = commands.add_parser("policy", help="which rule decides, and why")
    actions = policy.add_subparsers(dest="action", metavar="ACTION", required=True)
    testing = actions.add_parser("test", parents=parents, help="what the guards would say to a call")
    testing.add_argument("tool", metavar="TOOL")
    testing.add_argument("pairs", nargs="*", metavar="KEY=VALUE", help="arguments of the call")
    testing.add_argument("--client", default="anonymous", metavar="NAME", help="for this client")


_MODULES = {
    "up": "plait.cli.up",
    "mcp-server": "plait.cli.mcp_server",
    "list": "plait.cli.list",
    "call": "plait.cli.call",
    "delegate": "plait.cli.delegate",
    "check": "plait.cli.check",
    "explain": "plait.cli.explain",
    "policy": "plait.cli.policy",
    "doctor": "plait.cli.doctor",
    "audit": "plait.cli.audit",
    "token": "plait.cli.token",
}


def main(argv: Sequence[str] | None = None) -> int:
    options = build_parser().parse_args(argv)
    level = "debug" if options.debug else options.log_level
    logging.basicConfig(stream=sys.stderr, level=level.upper(), format="plait: %(levelname)s: %(message)s")
    if options.log_level == "warning":
        # Whoever has just saved the file waits for this line, and nobody else causes it.
        logging.getLogger("plait.configuration").setLevel(logging.INFO)
    try:
        code: int = importlib.import_module(_MODULES[options.command]).run(options)
    except ConfigError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return CONFIG
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has had enough, as `head` has. Python must not complain about it.
        sys.stderr.close()
        return UNEXPECTED
    except Exception as problem:
        if options.debug:
            raise
        print(
            f"error: {problem}\n  = this is a bug in plait; run again with --debug for the traceback",
            file=sys.stderr,
        )
        return UNEXPECTED
    return code
