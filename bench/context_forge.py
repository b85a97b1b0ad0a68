"""IBM ContextForge with a database of its own: how it is started, and how it learns of a server."""

import json
import secrets
import urllib.request
from pathlib import Path

from bench.raw_client import PATIENCE


def environment(directory: Path) -> list[str]:
    """Its settings: one process, SQLite, no accounts, no limit on the rate of calls, loopback allowed."""
    throwaway = secrets.token_urlsafe(32)
    settings = {
        "DATABASE_URL": f"sqlite:///{directory / 'forge.db'}",
        "JWT_SECRET_KEY": secrets.token_urlsafe(32),
        "AUTH_ENCRYPTION_SECRET": secrets.token_urlsafe(32),
        "PLATFORM_ADMIN_PASSWORD": f"A1!{throwaway}",
        "DEFAULT_USER_PASSWORD": f"A1!{throwaway}",
        "BASIC_AUTH_PASSWORD": f"A1!{throwaway}",
        "AUTH_REQUIRED": "false",
        "ALLOW_UNAUTHENTICATED_ADMIN": "true",
        "MCPGATEWAY_UI_ENABLED": "false",
        "RATE_LIMITING_ENABLED": "false",
        "TOOL_RATE_LIMIT": "1000000",
        "SSRF_ALLOW_LOCALHOST": "true",
        "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
        "CACHE_TYPE": "memory",
        "LOG_LEVEL": "ERROR",
    }
    return [f"{name}={value}" for name, value in settings.items()]


def register(front: int, prefix: str, back: int) -> None:
    """Tell it of the server on that port; its tools come out as `prefix-name`."""
    server = {"name": prefix, "url": f"http://127.0.0.1:{back}/mcp", "transport": "STREAMABLEHTTP"}
    request = urllib.request.Request(
        f"http://127.0.0.1:{front}/gateways",
        data=json.dumps(server).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        answer.read()
