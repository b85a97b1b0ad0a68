"""Find the provider or server object that a configuration names as `package.module:object`."""

import importlib
import inspect
import logging
import os
import sys
from typing import TypeGuard

from plait.config.problem import Where
from plait.errors import Unmountable
from plait.providers.calling import Provider
from plait.upstream.inprocess import lowlevel_of

_log = logging.getLogger("plait")


def load_provider(place: str, where: Where | None = None) -> object:
    """The provider, or MCP server object, at `package.module:name`; a class or a function without
    parameters is called for it.

    `where` is the place in the file that names it: modules beside that file are found too.
    """
    folders = _search_also(where)
    module_name, _, name = place.partition(":")
    try:
        made = _made(getattr(importlib.import_module(module_name), name))
        if is_provider(made) or lowlevel_of(made) is not None:
            return made
    except ModuleNotFoundError as problem:
        looked = ", ".join(("the installed packages", *folders))
        raise Unmountable(f"cannot load {place}: {problem}; looked in {looked}") from problem
    except (Exception, SystemExit) as problem:  # whatever somebody's module does, the rest is served
        _log.debug("loading %s failed", place, exc_info=True)
        raise Unmountable(f"cannot load {place}: {type(problem).__name__}: {problem}") from problem
    parts = "namespace, list_tools, call_tool or stream_tool"
    wanted = f"a ToolProvider ({parts}) or a server object of fastmcp or mcp"
    raise Unmountable(f"{place} is not {wanted}, but of type {type(made).__name__}")


def _search_also(where: Where | None) -> list[str]:
    """Let Python find modules beside the file and in the current folder.

    They come last, and stay: a file there can stand in for no installed package, and a module may
    import another one long after it was loaded.
    """
    folders = [os.path.dirname(os.path.abspath(where.file))] if where is not None else []
    folders = list(dict.fromkeys((*folders, os.getcwd())))
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    return folders


def _made(found: object) -> object:
    if not isinstance(found, type) and (not callable(found) or is_provider(found)):
        return found
    made: object = found()
    if inspect.iscoroutine(made):
        made.close()
        raise TypeError("an async function makes no provider here; write a plain one")
    return made


def is_provider(made: object) -> TypeGuard[Provider]:
    called = hasattr(made, "call_tool") or hasattr(made, "stream_tool")
    return called and all(hasattr(made, part) for part in ("namespace", "list_tools"))
