"""Tokens by client credentials: from endpoints that grant them, reject them, and misbehave."""

from base64 import b64encode
from pathlib import Path

import pytest

from sluicegate.config.oauth import OauthClient
from sluicegate.config.tls import ServerTls
from sluicegate.config.values.password import SecretText
from sluicegate.proxy.network.oauth import GrantedToken, NoTokenGranted, TokenCache, TokenEndpoint
from tests.broker.certificates import Authority
from tests.pipeline.bearers import CLIENT, SECRET, token_endpoint
from tests.registry.stand_in import StandIn, said


def keys(url: str, secret: str = SECRET, tls: ServerTls | None = None) -> OauthClient:
    return OauthClient(token_url=url, client_id=CLIENT, client_secret=SecretText(secret), scope="a b", tls=tls)


def failure_of(client: OauthClient, seconds: float = 5) -> str:
    """Return the message of a request that fails; it names the endpoint and shows no secret."""
    with pytest.raises(NoTokenGranted) as raised:
        TokenEndpoint(client, "registries.main.oauth").fetch(seconds)
    for hidden in (SECRET, b64encode(f"{CLIENT}:{SECRET}".encode()).decode(), "swordfish"):
        assert hidden not in f"{raised.value} {raised.value.__cause__}"
    assert str(raised.value).startswith(f"token endpoint {client.token_url}: ")
    return str(raised.value)


@pytest.mark.parametrize("scheme", ["http", "HTTP", "https", "HTTPS"])  # RFC 3986, 3.1: in any letters
def test_a_token_is_granted_and_the_secret_file_is_read_for_each_request(tmp_path: Path, scheme: str) -> None:
    authority = Authority(tmp_path)
    certificate = authority.sign("server") if scheme.lower() == "https" else None
    tls = ServerTls(ca_file=str(authority.file)) if certificate is not None else None
    file = tmp_path / "secret"
    file.write_text("before\n")
    with token_endpoint(certificate) as there:
        client = OauthClient(
            token_url=f"{scheme}:{there.url.partition(':')[2]}",
            client_id=CLIENT,
            client_secret_file=str(file),
            scope="read write",
            tls=tls,
        )
        assert "HTTP 401, invalid_client" in failure_of(client)
        file.write_text(f"{SECRET}\n")
        there.lasts_seconds = 90

        granted = TokenEndpoint(client, "o").fetch()

        assert granted == GrantedToken(there.given[0], 90_000)
        assert there.asked[-1] == {"grant_type": ["client_credentials"], "scope": ["read write"]}
        file.unlink()
        assert "registries.main.oauth.client_secret_file" in failure_of(client)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        ("200 OK", b'{"access_token": "swordfish ", "expires_in": 1}', "no valid access_token"),
        ("200 OK", b'{"access_token": "' + b"x" * 40_000 + b'"}', "no valid access_token"),
        ("200 OK", b"[" * 20_000, "no valid access_token"),
        ("200 OK", b'{"access_token": "t", "expires_in": 0}', "no valid expires_in"),
        ("200 OK", b'{"access_token": "t", "expires_in": NaN}', "no valid expires_in"),
        ("200 OK", b" " * 100_000, "it sent a response of more than 65536 bytes"),
        ("302 Found", b"", "redirects (HTTP 302), which is not followed"),
        (
            "400 Bad",
            b'{"error": "invalid_scope", "error_description": "swordfish"}',
            "(HTTP 400, invalid_scope): check",
        ),
        ("401 No", b'{"error": "swordfish"}', "it grants no token (HTTP 401): check"),
        ("429 Slow", b"", "it fails (HTTP 429)"),
        ("503 Busy", b"<html>swordfish", "it fails (HTTP 503)"),
    ],
)
def test_each_unusable_response_has_its_own_message(status: str, body: bytes, words: str) -> None:
    with StandIn(lambda client, _: client.sendall(said(status, body))) as there:
        assert words in failure_of(keys(f"{there.url}/token"))


def test_an_endpoint_that_is_slow_or_absent() -> None:
    with StandIn(lambda client, _: there.drip(client, b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1000)) as there:
        client = keys(f"{there.url}/token")
        assert "no response within 0.3 s" in failure_of(client, 0.3)
    assert "Connection refused" in failure_of(client)


@pytest.mark.parametrize(
    ("stated", "lifetime_ms"),
    [("", 300_000), (', "expires_in": "3599"', 3_599_000), (', "expires_in": 1e300', 2_592_000_000)],
)
def test_a_lifetime_may_be_missing_a_text_or_long(stated: str, lifetime_ms: int) -> None:
    body = f'{{"access_token": "t"{stated}}}'.encode()
    with StandIn(lambda client, _: client.sendall(said("200 OK", body))) as there:
        assert TokenEndpoint(keys(there.url), "o").fetch() == GrantedToken("t", lifetime_ms)


def test_a_token_is_replaced_before_it_expires_and_kept_in_an_outage() -> None:
    now, granted, is_up = [0.0], [0], [True]

    def fetch(_: float) -> GrantedToken:
        granted[0] += 1
        if not is_up[0]:
            raise NoTokenGranted("down")
        return GrantedToken(f"t{granted[0]}", 100_000)

    cache = TokenCache(fetch, lambda: now[0])
    assert [cache.current(), cache.current()] == ["t1", "t1"]
    now[0] = 79
    assert cache.current() == "t1"
    now[0] = 80
    assert cache.current() == "t2"
    is_up[0] = False
    now[0] = 160
    assert [cache.current(), cache.current(), granted[0]] == ["t2", "t2", 3]  # one attempt, then a pause
    now[0] = 180
    with pytest.raises(NoTokenGranted):
        cache.current()
    is_up[0] = True
    assert cache.current() == "t5"
    cache.forget("t2")
    assert cache.current() == "t5"
    cache.forget("t5")
    assert cache.current() == "t6"
