"""`plait token`: who may come in over HTTP.

Only what may be typed is here, since `plait --help` needs it; what is done is in token_actions.
"""

import argparse
import importlib
from typing import TypeVar

Parser = TypeVar("Parser", bound=argparse.ArgumentParser)


def add_parser(commands: "argparse._SubParsersAction[Parser]", common: Parser, looking: Parser) -> None:
    parser = commands.add_parser("token", help="who may come in over HTTP: add, list or revoke tokens")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", parents=[common, looking], help="make a token; it is shown once")
    add.add_argument("name", metavar="NAME", help="who it is for; rules and records call it this")
    add.add_argument(
        "--tools", action="append", metavar="GLOB", help="only names like this (default: everything)"
    )
    add.add_argument(
        "--expires", metavar="TIME", help="30d, 12h, or a date such as 2027-01-31 (default: never)"
    )
    add.add_argument("--sessions", type=int, metavar="N", help="at most so many at once (default: 100)")
    add.add_argument("--rate", type=int, metavar="N", help="at most so many requests in a minute")
    actions.add_parser("list", parents=[common, looking], help="who has one, and for what")
    revoke = actions.add_parser("revoke", parents=[common, looking], help="let it count no longer, at once")
    revoke.add_argument("name", metavar="NAME")


def run(options: argparse.Namespace) -> int:
    code: int = importlib.import_module("plait.cli.token_actions").run(options)
    return code
