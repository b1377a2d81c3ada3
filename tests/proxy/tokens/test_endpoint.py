"""Tokens are obtained with client credentials from endpoints that grant them, reject the request, or misbehave."""

import socket
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from sluicegate.config.oauth import OauthClient
from sluicegate.config.tls import ServerTls
from sluicegate.config.values.password import SecretText
from sluicegate.proxy.tokens.cache import GrantedToken, TokenCache, TokenMissing
from sluicegate.proxy.tokens.endpoint import TokenEndpoint, configured_client
from tests.broker.certificates import Authority
from tests.pipeline.bearers import CLIENT, SECRET, token_endpoint
from tests.registry.stand_in import StandIn, http_response


def oauth_client(url: str, secret: str = SECRET, tls: ServerTls | None = None) -> OauthClient:
    return OauthClient(token_url=url, client_id=CLIENT, client_secret=SecretText(secret), scope="a b", tls=tls)


def failure_of(client: OauthClient, seconds: float = 5) -> str:
    """Return the message of a request that fails; it names the endpoint and shows no secret."""
    with pytest.raises(TokenMissing) as raised:
        TokenEndpoint(configured_client(client, "registries.main.oauth")).fetch(seconds)
    for hidden in (SECRET, b64encode(f"{CLIENT}:{SECRET}".encode()).decode(), "swordfish"):
        assert hidden not in f"{raised.value} {raised.value.__cause__}"
    assert str(raised.value).startswith(f"token endpoint {client.token_url}: ")
    return str(raised.value)


@pytest.mark.parametrize("scheme", ["http", "HTTP", "https", "HTTPS"])  # RFC 3986, 3.1: a scheme is case-insensitive
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

        granted = TokenEndpoint(configured_client(client, "o")).fetch()

        assert granted == GrantedToken(there.given[0], 90_000)
        assert there.asked[-1] == {"grant_type": ["client_credentials"], "scope": ["read write"]}
        file.unlink()
        assert TokenEndpoint(configured_client(client, "o")).fetch() == GrantedToken(there.given[-1], 90_000)
        file.write_text("")
        assert "registries.main.oauth.client_secret_file" in failure_of(client)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        ("200 OK", b'{"access_token": "swordfish ", "expires_in": 1}', "no valid access_token"),
        ("200 OK", b'{"access_token": "' + b"x" * 40_000 + b'"}', "no valid access_token"),
        ("200 OK", b"[" * 20_000, "no valid access_token"),
        ("200 OK", b'{"access_token": "t", "expires_in": 0}', "no valid expires_in"),
        ("200 OK", b'{"access_token": "t", "expires_in": NaN}', "no valid expires_in"),
        ("200 OK", b'{"access_token": "t", "expires_in": -3600}', "no valid expires_in"),
        ("200 OK", b'{"access_token": "t", "expires_in": "-3600"}', "no valid expires_in"),
        ("200 OK", b'{"access_token": "t", "expires_in": "0"}', "no valid expires_in"),
        ("200 OK", b'{"access_token": "t", "expires_in": "soon"}', "no valid expires_in"),
        ("200 OK", b'{"access_token": "t", "expires_in": true}', "no valid expires_in"),
        ("200 OK", b'{"access_token": "t", "expires_in": null}', "no valid expires_in"),
        ("200 OK", b" " * 100_000, "the server sent a response of more than 65536 bytes"),
        ("302 Found", b"", "redirects (HTTP 302), and redirects are not followed"),
        (
            "400 Bad",
            b'{"error": "invalid_scope", "error_description": "swordfish"}',
            "(HTTP 400, invalid_scope): check",
        ),
        ("401 No", b'{"error": "swordfish"}', "the endpoint grants no token (HTTP 401): check"),
        ("429 Slow", b"", "the endpoint failed (HTTP 429)"),
        ("503 Busy", b"<html>swordfish", "the endpoint failed (HTTP 503)"),
    ],
)
def test_each_invalid_token_response_has_its_own_error_message(status: str, body: bytes, words: str) -> None:
    with StandIn(lambda client, _: client.sendall(http_response(status, body))) as there:
        assert words in failure_of(oauth_client(f"{there.url}/token"))


def test_a_slow_or_absent_token_endpoint_is_an_error() -> None:
    with StandIn(lambda client, _: there.drip_bytes(client, b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1000)) as there:
        client = oauth_client(f"{there.url}/token")
        assert "no response within 0.3 s" in failure_of(client, 0.3)
    assert "Connection refused" in failure_of(client)


@pytest.mark.parametrize(
    ("stated", "lifetime_ms"),
    [
        ("", 300_000),
        (', "expires_in": "3599"', 3_599_000),
        (', "expires_in": 0.5', 500),
        (', "expires_in": 1e300', 2_592_000_000),
        (', "expires_in": "9999999999999999"', 2_592_000_000),
    ],
)
def test_token_lifetime_is_parsed_capped_or_defaulted(stated: str, lifetime_ms: int) -> None:
    body = f'{{"access_token": "t"{stated}}}'.encode()
    with StandIn(lambda client, _: client.sendall(http_response("200 OK", body))) as there:
        assert TokenEndpoint(configured_client(oauth_client(there.url), "o")).fetch() == GrantedToken("t", lifetime_ms)


def test_token_is_renewed_before_expiry_and_kept_during_an_outage() -> None:
    now, granted, is_up = [0.0], [0], [True]

    def fetch(_: float) -> GrantedToken:
        granted[0] += 1
        if not is_up[0]:
            raise TokenMissing("down")
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
    with pytest.raises(TokenMissing):
        cache.current()
    is_up[0] = True
    assert cache.current() == "t5"
    cache.forget("t2")
    assert cache.current() == "t5"
    cache.forget("t5")
    assert cache.current() == "t6"


@pytest.mark.parametrize(
    ("status", "headers", "pause"),
    [
        ("429 Too Many Requests", (), 1),
        ("429 Too Many Requests", ("Retry-After: 7",), 7),
        ("429 Too Many Requests", ("Retry-After: 99999999999999999999",), 300),
        ("429 Too Many Requests", ("Retry-After: -5",), 1),
        ("429 Too Many Requests", ("Retry-After: soon",), 1),
        ("429 Too Many Requests", ("Retry-After: Fri, 31 Dec 1999 23:59:59 GMT",), 0),
        ("429 Too Many Requests", ("Retry-After: Fri, 31 Dec 2199 23:59:59 GMT",), 300),
        ("429 Too Many Requests", ("Retry-After: Fri, 99 Dec 99999999999 23:59:59 GMT",), 1),
        ("503 Service Unavailable", ("Retry-After: 12",), 12),
        ("503 Service Unavailable", (), 0),
    ],
)
def test_temporary_failure_has_the_retry_delay_of_the_endpoint(
    status: str, headers: tuple[str, ...], pause: float
) -> None:
    answering = StandIn(lambda client, _: client.sendall(http_response(status, b"", *headers)))
    with answering as there, pytest.raises(TokenMissing) as raised:
        TokenEndpoint(configured_client(oauth_client(there.url), "o")).fetch()

    assert raised.value.is_temporary
    assert f"the endpoint failed (HTTP {status[:3]})" in str(raised.value)
    assert raised.value.retry_after_seconds == pause


@pytest.mark.parametrize("status", ["400 Bad Request", "401 Unauthorized", "302 Found"])
def test_rejected_token_request_is_a_permanent_failure(status: str) -> None:
    with (
        StandIn(lambda client, _: client.sendall(http_response(status))) as there,
        pytest.raises(TokenMissing) as raised,
    ):
        TokenEndpoint(configured_client(oauth_client(there.url), "o")).fetch()

    assert not raised.value.is_temporary


def test_no_token_request_is_sent_before_retry_after_has_elapsed() -> None:
    now, statuses = [0.0], ["429 Busy", "200 OK", "429 Busy", "200 OK"]

    def respond(client: socket.socket, _: bytes) -> None:
        client.sendall(http_response(statuses.pop(0), b'{"access_token": "t", "expires_in": 100}', "Retry-After: 20"))

    with StandIn(respond) as there:
        cache = TokenCache(TokenEndpoint(configured_client(oauth_client(there.url), "o")).fetch, lambda: now[0])
        for second in (0, 1, 19.9):
            now[0] = second
            with pytest.raises(TokenMissing, match=r"HTTP 429\); the next request follows after 20 s") as raised:
                cache.current()
            assert raised.value.retry_after_seconds == 20 - second
        assert len(there.heads) == 1
        now[0] = 20
        assert cache.current() == "t"
        now[0] = 100  # the token is replaced after 80 of its 100 seconds
        assert [cache.current(), cache.current()] == ["t", "t"]
        assert len(there.heads) == 3
        now[0] = 119.9
        assert cache.current() == "t"
        assert len(there.heads) == 3
        now[0] = 120
        assert cache.current() == "t"
        assert len(there.heads) == 4


def test_query_string_of_the_token_url_is_sent() -> None:
    """RFC 6749, 3.2: the endpoint's URL may have a query, and the pipeline's settings allow one."""
    with StandIn(lambda client, _: client.sendall(http_response("200 OK", b'{"access_token": "t"}'))) as there:
        client = replace(configured_client(oauth_client(there.url), "o"), token_url=f"{there.url}/token?tenant=a")
        TokenEndpoint(client).fetch()

    assert there.heads[0].startswith(b"POST /token?tenant=a HTTP/1.1")
