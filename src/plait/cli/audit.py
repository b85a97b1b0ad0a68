"""`plait audit`: look at the records of calls, and see whether they are whole.

Only what may be typed is here, since `plait --help` needs it; what is done is in audit_views.
"""

import argparse
import importlib
from typing import TypeVar

Parser = TypeVar("Parser", bound=argparse.ArgumentParser)


def add_parser(commands: "argparse._SubParsersAction[Parser]", common: Parser, looking: Parser) -> None:
    parser = commands.add_parser("audit", help="the records of calls: show, verify or export them")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    tail = actions.add_parser("tail", parents=[common, looking], help="the latest calls")
    tail.add_argument("-n", type=number, default=20, metavar="N", help="how many (default: 20)")
    tail.add_argument("-f", "--follow", action="store_true", help="go on with new ones until interrupted")
    verify = actions.add_parser(
        "verify", parents=[common, looking], help="is every record there, and unaltered? exit code 1 if not"
    )
    verify.add_argument("--key", metavar="FILE", help="a copy of the key that was kept elsewhere")
    export = actions.add_parser("export", parents=[common], help="the records as lines of JSON")
    export.add_argument("--since", metavar="TIME", help="from then on (2026-03-15, or 2026-03-15T10:30Z)")
    export.add_argument("--until", metavar="TIME", help="only what was before")
    export.add_argument("--tool", metavar="GLOB", help="only names like this")
    export.add_argument("--identity", metavar="NAME", help="only calls by this one")
    for action in (tail, verify, export):
        action.add_argument("--dir", metavar="DIR", help="the folder (default: what the configuration says)")


def number(text: str) -> int:
    """What argparse calls a wrong one is the name of this function."""
    count = int(text)
    if count < 0:
        raise ValueError(text)
    return count


def run(options: argparse.Namespace) -> int:
    code: int = importlib.import_module("plait.cli.audit_views").run(options)
    return code
