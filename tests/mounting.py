"""How tests mount a server object, a provider or a scripted server: the one place that knows."""

from plait.compositor import Compositor
from plait.routing.naming import MountPrefix


async def mount(compositor: Compositor, prefix: str, server: object) -> None:
    await compositor.mount(MountPrefix(prefix) if prefix else None, server, name=prefix or "bare", wait=False)
