"""Envoy with its MCP router in front of the servers of one port: what its configuration file says."""

import json
from pathlib import Path

EXTENSIONS = "type.googleapis.com/envoy.extensions."

Entry = dict[str, object]


def write_envoy(file: Path, front: int, back: int, prefixes: list[str]) -> Path:
    """Listen on one port, and reach every server on the other; names come out as `prefix__name`."""
    chain = {"name": "envoy.filters.network.http_connection_manager", "typed_config": connections(prefixes)}
    listener = {"name": "mcp", "address": address(front), "filter_chains": [{"filters": [chain]}]}
    resources = {"listeners": [listener], "clusters": [cluster(prefix, back) for prefix in prefixes]}
    file.write_text(json.dumps({"static_resources": resources}, indent=2))
    return file


def connections(prefixes: list[str]) -> Entry:
    """HTTP, then the filter that reads MCP, then the router that ends the chain."""
    everything = {"match": {"prefix": "/"}, "route": {"cluster": prefixes[0]}}
    servers = [{"name": prefix, "mcp_cluster": {"cluster": prefix, "path": "/mcp"}} for prefix in prefixes]
    return {
        "@type": f"{EXTENSIONS}filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "mcp",
        "codec_type": "HTTP1",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [everything]}]},
        "http_filters": [
            typed("envoy.filters.http.mcp", "filters.http.mcp.v3.Mcp"),
            typed("envoy.filters.http.mcp_router", "filters.http.mcp_router.v3.McpRouter", servers=servers),
        ],
    }


def typed(name: str, kind: str, **fields: object) -> Entry:
    """A filter and its settings."""
    return {"name": name, "typed_config": {"@type": f"{EXTENSIONS}{kind}", **fields}}


def cluster(name: str, port: int) -> Entry:
    """One server."""
    endpoint = {"endpoint": {"address": address(port)}}
    load = {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]}
    return {"name": name, "type": "STATIC", "connect_timeout": "5s", "load_assignment": load}


def address(port: int) -> Entry:
    """On loopback."""
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
