"""The names of prefixes that everybody agrees on."""

import subprocess
import sys

import pytest

from plait import constants
from plait.routing.naming import MountPrefix, build_mcp_function

STANDARD = ["resources", "runtime", "compositor_meta", "policy_reader", "policy_proposer", "seatbelt_exec"]


@pytest.mark.requirement("S3-04")
@pytest.mark.parametrize("name", [*STANDARD, "compositor_admin"])
def test_each_standard_prefix_has_a_constant_of_the_prefix_type(name: str) -> None:
    prefix = getattr(constants, f"{name.upper()}_MOUNT_PREFIX")
    assert (type(prefix), prefix) == (MountPrefix, name)
    assert build_mcp_function(prefix, "t") == f"{name}__t"


@pytest.mark.requirement("BD-01")
def test_importing_a_prefix_imports_nothing_heavy() -> None:
    heavy = ("mcp", "fastmcp", "aiohttp", "uvloop", "pydantic", "asyncio")
    code = (
        "import sys; from plait.constants import RUNTIME_MOUNT_PREFIX; from plait import MountPrefix; "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.requirement("BD-01")
@pytest.mark.parametrize("text", ["", "Fs", "1a", "_a", "a b", "a" * 51])
def test_what_is_no_prefix_cannot_become_one(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be a prefix"):
        MountPrefix(text)


@pytest.mark.requirement("BD-01")
def test_a_tool_has_a_name() -> None:
    with pytest.raises(ValueError, match="a tool has a name"):
        build_mcp_function(MountPrefix("fs"), "")
