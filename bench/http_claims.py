"""What we promise about our speed over HTTP."""

from bench.claims import Promise, Results, rate_wide

INTERPRETED = ("fastmcp", "fastmcp-kept", "mcp-proxy", "forge")
"""Peers in Python or on Node; of those that stand on the same route, each must be behind us."""


def against_fastmcp(results: Results) -> tuple[bool, str]:
    return times("http", results)


def against_fastmcp_to_stdio(results: Results) -> tuple[bool, str]:
    return times("pipe", results)


def times(route: str, results: Results) -> tuple[bool, str]:
    ours = results[f"{route}-plait"]
    by_the_book = ours.compare(results[f"{route}-fastmcp"], rate_wide)
    kept = ours.compare(results[f"{route}-fastmcp-kept"], rate_wide)
    return by_the_book >= 20, f"{by_the_book:.1f} times, and {kept:.1f} times with kept sessions"


def ahead(results: Results) -> tuple[bool, str]:
    factors = {
        f"{route}-{peer}": results[f"{route}-plait"].compare(theirs, rate_wide)
        for route in ("http", "pipe")
        for peer in INTERPRETED
        if (theirs := results.get(f"{route}-{peer}")) is not None and not theirs.failure
    }
    nearest = min(factors, key=factors.__getitem__)
    return factors[nearest] > 1, f"{len(factors)} peers; the nearest, {nearest}: {factors[nearest]:.1f} times"


def against_envoy(results: Results) -> tuple[bool, str]:
    share = results["http-plait"].compare(results["http-envoy"], rate_wide)
    return share >= 0.35, f"{share:.0%}"


HTTP_PROMISES = (
    Promise(
        "HTTP to HTTP, 16 in flight: at least 20 times the calls per second of FastMCP's proxy",
        ("http-plait", "http-fastmcp", "http-fastmcp-kept"),
        against_fastmcp,
    ),
    Promise(
        "HTTP to stdio, 16 in flight: at least 20 times the calls per second of FastMCP's proxy",
        ("pipe-plait", "pipe-fastmcp", "pipe-fastmcp-kept"),
        against_fastmcp_to_stdio,
    ),
    Promise(
        "16 in flight: ahead of every Python and Node peer",
        ("http-plait", "pipe-plait", "http-fastmcp", "pipe-fastmcp"),
        ahead,
    ),
    Promise(
        "HTTP to HTTP, 16 in flight: at least 35 % of Envoy's calls per second",
        ("http-plait", "http-envoy"),
        against_envoy,
    ),
)
