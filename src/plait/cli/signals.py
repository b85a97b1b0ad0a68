"""When somebody tells us to stop."""

import asyncio
import signal


def on_signals() -> "asyncio.Future[None]":
    """Done at the next SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[None] = loop.create_future()

    def ask() -> None:
        if not asked.done():
            asked.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask)
    return asked
