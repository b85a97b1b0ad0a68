"""We as a resource server: whose tokens are taken, and what they are good for."""

import asyncio
import json
import time
from collections.abc import Mapping

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from asgi import Browser, HttpClient, closing
from clients import compositor
from fakes import FakeServer
from loopback import Received, Site, plain
from plait.config.access import OAuthSettings
from plait.downstream.access import Access
from plait.downstream.asgi import Answer
from plait.downstream.http import HttpApp
from plait.downstream.jwks import PAUSE
from plait.downstream.oauth import ResourceServer
from plait.downstream.sources import Sources
from plait.outbound.client import HttpClient as OutboundClient
from plait.outbound.faults import AnswerBroken
from plait.pipeline.grants import Grant, Identity

ISSUER = "https://issuer.example/tenant"
RESOURCE = "https://gateway.example/mcp"
SCOPES = {"read": ("fs__read_*",), "write": ("fs__write_*", "fs__read_*")}
RSA_KEY = rsa.generate_private_key(65537, 2048)
NEW_KEY = ec.generate_private_key(ec.SECP256R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
STRANGER = rsa.generate_private_key(65537, 2048)
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def public(key: Key, id: str) -> dict[str, object]:
    match key:
        case rsa.RSAPrivateKey():
            made = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case ec.EllipticCurvePrivateKey():
            made = jwt.algorithms.ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        case _:
            made = jwt.algorithms.OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**made, "kid": id, "use": "sig"}


class Pages:
    """The issuer's pages, in place of the network: our own client is tested elsewhere."""

    def __init__(self) -> None:
        self.keys = [public(RSA_KEY, "one"), public(ED_KEY, "ed")]
        self.metadata: dict[str, object] = {"issuer": ISSUER, "jwks_uri": "https://issuer.example/keys"}
        self.at = "https://issuer.example/.well-known/oauth-authorization-server/tenant"
        self.asked: list[str] = []
        self.down = False

    def open(self, method: str, url: str, **_: object) -> "Pages.Opening":
        return Pages.Opening(self, url)

    async def aclose(self) -> None: ...

    class Opening:
        def __init__(self, pages: "Pages", url: str) -> None:
            self._pages = pages
            self._url = url
            self.status = 200

        async def __aenter__(self) -> "Pages.Opening":
            pages = self._pages
            pages.asked.append(self._url)
            await asyncio.sleep(0)
            if pages.down:
                raise AnswerBroken("issuer.example does not answer")
            known = {pages.at: pages.metadata, "https://issuer.example/keys": {"keys": pages.keys}}
            self.status = 200 if self._url in known else 404
            self._body = json.dumps(known.get(self._url)).encode()
            return self

        async def __aexit__(self, *exc: object) -> None: ...

        async def read(self) -> bytes:
            return self._body


def server(pages: Pages, scopes: Mapping[str, tuple[str, ...]] = SCOPES, **more: str) -> ResourceServer:
    settings = OAuthSettings(issuer=ISSUER, resource=RESOURCE, scopes=scopes, **more)
    client: object = pages
    return ResourceServer(settings, client)  # type: ignore[arg-type]


def token(key: Key = RSA_KEY, algorithm: str = "RS256", kid: str | None = "one", **claims: object) -> str:
    return signed(claims, key, algorithm, kid)


def signed(
    claims: Mapping[str, object], key: Key = RSA_KEY, algorithm: str = "RS256", kid: str | None = "one"
) -> str:
    said = {
        "iss": ISSUER,
        "aud": RESOURCE,
        "sub": "u1",
        "exp": int(time.time()) + 600,
        "scope": "read openid",
        **claims,
    }
    kept = {name: value for name, value in said.items() if value is not None}
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(kept, key, algorithm=algorithm, headers=headers)


@pytest.mark.parametrize(
    ("claims", "tools"),
    [
        ({}, ("fs__read_*",)),
        ({"scope": "write read"}, ("fs__read_*", "fs__write_*")),
        ({"scope": None, "scp": ["write", 7]}, ("fs__read_*", "fs__write_*")),
        ({"aud": ["https://other.example", RESOURCE]}, ("fs__read_*",)),
    ],
)
async def test_scopes_become_a_grant(claims: dict[str, object], tools: tuple[str, ...]) -> None:
    found = await server(Pages()).identify(signed(claims))
    assert isinstance(found, Identity)
    assert (found, found.grant) == ("oauth:u1", Grant(tools))


async def test_clocks_may_differ_a_little() -> None:
    assert await server(Pages()).identify(token(exp=int(time.time()) - 2)) == "oauth:u1"


async def test_without_scopes_in_the_settings_every_good_token_is_good_for_everything() -> None:
    found = await server(Pages(), {}).identify(token(scope=None))
    assert isinstance(found, Identity)
    assert found.grant == Grant()


async def test_other_kinds_of_keys_work_too() -> None:
    pages = Pages()
    pages.keys.append(public(NEW_KEY, "two"))
    assert await server(pages).identify(token(NEW_KEY, "ES256", "two")) == "oauth:u1"
    assert await server(pages).identify(token(ED_KEY, "EdDSA", "ed")) == "oauth:u1"
    assert await server(pages).identify(token(kid=None)) == "oauth:u1"


BAD = {
    "expired": {"exp": 1_000_000_000},
    "not yet": {"nbf": 2**33},
    "no end": {"exp": None},
    "other audience": {"aud": "https://gateway.example/other"},
    "no audience": {"aud": None},
    "other issuer": {"iss": "https://issuer.example"},
    "no issuer": {"iss": None},
    "no subject": {"sub": None},
    "empty subject": {"sub": ""},
    "odd subject": {"sub": "a\nb"},
    "long subject": {"sub": "x" * 201},
}


@pytest.mark.parametrize("claims", BAD.values(), ids=BAD.keys())
async def test_a_token_that_is_not_for_us_is_nobodys(claims: dict[str, object]) -> None:
    assert await server(Pages()).identify(signed(claims)) is None


async def test_a_token_that_somebody_else_signed_is_nobodys() -> None:
    it = server(Pages())
    for made in (
        token(STRANGER),
        token(NEW_KEY, "ES256", "one"),
        jwt.encode({"sub": "u1"}, "", algorithm="none"),
        jwt.encode(
            {"sub": "u1", "aud": RESOURCE, "iss": ISSUER, "exp": 2**33}, "x" * 64, "HS256", {"kid": "one"}
        ),
        token()[:-4] + "AAAA",
        "",
        "a.b",
        "a.b.c",
        "...",
        "x" * 20_000,
    ):
        assert await it.identify(made) is None


async def test_a_token_of_another_kind_is_not_taken() -> None:
    claims = {"iss": ISSUER, "aud": RESOURCE, "sub": "u", "exp": 2**33}
    made = jwt.encode(claims, RSA_KEY, "RS256", {"kid": "one", "typ": "oauth-id-jag+jwt"})
    assert await server(Pages()).identify(made) is None


async def test_a_token_without_a_scope_of_ours_is_told_which_there_are() -> None:
    answer = await server(Pages()).identify(token(scope="openid"))
    assert isinstance(answer, Answer)
    assert answer.status == 403
    told = dict(answer.headers)[b"www-authenticate"].decode()
    assert 'error="insufficient_scope"' in told
    assert 'scope="read write"' in told
    assert "https://gateway.example/.well-known/oauth-protected-resource/mcp" in told


# ---- keys


async def test_keys_are_fetched_once_for_all_who_wait() -> None:
    pages = Pages()
    it = server(pages)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(it.identify(token())) for _ in range(20)]
    assert {task.result() for task in tasks} == {"oauth:u1"}
    assert pages.asked == [pages.at, "https://issuer.example/keys"]


async def test_a_rotated_key_is_fetched_but_made_up_ids_do_not_make_us_ask_all_the_time() -> None:
    pages = Pages()
    it = server(pages)
    assert await it.identify(token()) == "oauth:u1"
    pages.keys = [public(NEW_KEY, "two")]
    it._keys._tried -= PAUSE
    assert await it.identify(token(NEW_KEY, "ES256", "two")) == "oauth:u1"
    asked = len(pages.asked)
    for number in range(50):
        assert await it.identify(token(kid=f"made up {number}")) is None
    assert len(pages.asked) == asked


async def test_keys_that_we_have_stay_while_the_issuer_is_down() -> None:
    pages = Pages()
    it = server(pages)
    await it.identify(token())
    pages.down = True
    it._keys._tried = it._keys._fetched = -10_000.0
    assert await it.identify(token()) == "oauth:u1"


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://other.example", "jwks_uri": "https://issuer.example/keys"},
        {"issuer": ISSUER, "jwks_uri": "http://issuer.example/keys"},
        {"issuer": ISSUER, "jwks_uri": "file:///etc/passwd"},
        {"issuer": ISSUER},
        [],
    ],
)
async def test_without_keys_nobody_is_taken_for_anybody(metadata: dict[str, object]) -> None:
    pages = Pages()
    pages.metadata = metadata
    answer = await server(pages).identify(token())
    assert isinstance(answer, Answer)
    assert answer.status == 503


@pytest.mark.parametrize(
    "at",
    [
        "https://issuer.example/.well-known/openid-configuration/tenant",
        "https://issuer.example/tenant/.well-known/openid-configuration",
    ],
)
async def test_the_issuers_metadata_is_found_where_issuers_have_it(at: str) -> None:
    pages = Pages()
    pages.at = at
    assert await server(pages).identify(token()) == "oauth:u1"


async def test_the_place_of_the_keys_can_be_written_down() -> None:
    pages = Pages()
    it = server(pages, jwks_url="https://issuer.example/keys")
    assert await it.identify(token()) == "oauth:u1"
    assert pages.asked == ["https://issuer.example/keys"]


async def test_its_own_client_goes_through_the_policy_for_urls() -> None:
    it = ResourceServer(OAuthSettings(issuer="https://10.0.0.1", resource=RESOURCE))
    assert isinstance(it._client, OutboundClient)
    assert it._client._policy.allowed_domains
    await it.aclose()


async def test_keys_come_over_a_real_connection_too() -> None:
    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        pages = {
            "/.well-known/oauth-authorization-server": {"issuer": issuer, "jwks_uri": f"{issuer}/keys"},
            "/keys": {"keys": [public(RSA_KEY, "one")]},
        }
        writer.write(plain(json.dumps(pages[received.target]).encode()))

    async with asyncio.timeout(30), Site(answer) as site:
        issuer = site.url("", "127.0.0.1")
        it = ResourceServer(OAuthSettings(issuer=issuer, resource=RESOURCE))
        assert await it.identify(token(iss=issuer)) == "oauth:u1"
        await it.aclose()
        assert not any("authorization" in each.headers for each in site.received)


# ---- at the door


async def test_the_whole_way_in() -> None:
    it = server(Pages())
    access = Access(Sources(), [it], challenge=it.challenge)
    fs = FakeServer("fs", tools=["read_x", "write_x"])
    async with compositor(fs) as made, closing(HttpApp(made, access, documents=it.documents())) as app:
        visit, body = await Browser(app).ask("GET", "/mcp")
        assert visit.status == 401
        told = visit.headers["www-authenticate"]
        assert 'resource_metadata="https://gateway.example/.well-known/oauth-protected-resource/mcp"' in told
        for path in ("", "/mcp"):
            _, body = await Browser(app).ask("GET", f"/.well-known/oauth-protected-resource{path}")
            metadata = json.loads(body)
            assert (metadata["resource"], metadata["authorization_servers"]) == (RESOURCE, [ISSUER])
            assert metadata["scopes_supported"] == ["read", "write"]
        client = HttpClient(app, {"authorization": f"Bearer {token()}"})
        await client.shake_hands()
        assert it.knows(Identity("oauth:u1"))
        worse = HttpClient(app, {"authorization": f"Bearer {token(exp=1)}"})
        worse.session = client.session
        refused = worse.begin("tools/list")
        await refused.body()
        assert refused.status == 401
        assert 'error="invalid_token"' in refused.headers["www-authenticate"]
