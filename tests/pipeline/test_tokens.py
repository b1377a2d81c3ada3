"""Requests to a token endpoint, parsing of its responses, and refreshes."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from sluicegate.pipeline.kafka.settings import BadSetting, ClientSettings, client_settings
from sluicegate.pipeline.kafka.tokens import Bearer, TokenEndpointUnreachable, TokenRejected, token_of
from tests.broker.certificates import Authority
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.pipeline.bearers import CLIENT, SECRET, Endpoint, token, token_endpoint

PREFIX = "sasl.oauthbearer."


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with token_endpoint() as found:
        yield found


def settings(url: str, **more: str) -> dict[str, str]:
    """As a file for a client has them."""
    return {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        f"{PREFIX}token.endpoint.url": url,
        f"{PREFIX}client.id": CLIENT,
        f"{PREFIX}client.secret": SECRET,
        f"{PREFIX}scope": "kafka read",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def bearer(url: str, **more: str) -> Bearer:
    login = client_settings(settings(url, **more)).login
    assert isinstance(login, Bearer)
    return login


def test_an_endpoint_is_asked_as_librdkafka_asks_it(endpoint: Endpoint) -> None:
    theirs = Producer({"bootstrap.servers": f"127.0.0.1:{free_ports(1)}", **settings(endpoint.url)})
    eventually(lambda: len(endpoint.given) == 1 or theirs.poll(0.1) < 0, what="a token for librdkafka")

    found = token_of(bearer(endpoint.url))

    assert found.value == endpoint.given[1]
    assert endpoint.asked[0] == endpoint.asked[1]
    assert endpoint.asked[1] == {"grant_type": ["client_credentials"], "scope": ["kafka read"]}


def test_a_token_is_kept_for_most_of_its_life(endpoint: Endpoint) -> None:
    endpoint.lasts_seconds = 2.0
    first, again = token_of(bearer(endpoint.url)), token_of(bearer(endpoint.url))

    assert first == again
    assert len(endpoint.given) == 1
    eventually(lambda: token_of(bearer(endpoint.url)) != first, what="another token")


@pytest.mark.parametrize(
    ("response", "output"),
    [
        ((302, {"Location": "http://127.0.0.1:9/"}, b""), "responded 302 Found"),
        ((200, {}, b"<html>"), "responded with invalid JSON"),
        ((200, {}, b"[]"), "responded with JSON that is not an object"),
        ((200, {}, b'{"access_token": "a\\u0001b"}'), "has no valid access token"),
        ((200, {}, b'{"expires_in": 60}'), "has no valid access token"),
        ((200, {}, b'{"access_token": "a", "expires_in": "soon"}'), "invalid expires_in: expected a number above 0"),
        ((200, {}, b"x" * ((1 << 20) + 1)), "responded with more than 1 MiB"),
        ((400, {}, b'{"error": "invalid_scope"}'), "responded 400 Bad Request (invalid_scope)"),
        ((403, {}, b"no"), "responded 403 Forbidden"),
    ],
)
def test_invalid_responses(endpoint: Endpoint, response: tuple[int, dict[str, str], bytes], output: str) -> None:
    endpoint.response = response

    with pytest.raises(TokenRejected) as raised:
        token_of(bearer(endpoint.url))

    assert str(raised.value).endswith(output)


def test_an_unknown_client_gets_the_endpoints_error_without_the_secret(endpoint: Endpoint) -> None:
    with pytest.raises(TokenRejected) as raised:
        token_of(bearer(endpoint.url, **{f"{PREFIX}client.secret": "wrong"}))

    assert str(raised.value) == (
        f"token endpoint {endpoint.url} responded 401 Unauthorized (invalid_client: no such client)"
    )


def test_an_endpoint_that_cannot_now_may_later(endpoint: Endpoint) -> None:
    endpoint.response = (503, {}, b"")

    with pytest.raises(TokenEndpointUnreachable, match="responded 503 Service Unavailable"):
        token_of(bearer(endpoint.url))
    with pytest.raises(TokenEndpointUnreachable, match="Connection refused"):
        token_of(bearer(f"http://127.0.0.1:{free_ports(1)}/"))

    endpoint.response = None
    assert token_of(bearer(endpoint.url)).value == endpoint.given[0]


def test_by_https_with_an_authority_of_ones_own(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with token_endpoint(authority.sign("tokens")) as endpoint:
        with pytest.raises(TokenEndpointUnreachable, match="CERTIFICATE_VERIFY_FAILED"):
            token_of(bearer(endpoint.url))

        found = token_of(bearer(endpoint.url, https_ca_location=str(authority.file)))

        assert found.value == endpoint.given[0]


def test_a_file_is_read_each_time(tmp_path: Path) -> None:
    file, first, second = tmp_path / "a token", token(), token("other")
    login = client_settings({
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "OAUTHBEARER",
        f"{PREFIX}token.endpoint.url": file.as_uri(),
    }).login  # fmt: skip
    assert isinstance(login, Bearer)

    with pytest.raises(TokenRejected, match="a token: No such file or directory"):
        token_of(login)
    file.write_text(f"{first}\n")
    assert token_of(login).value == first
    file.write_text(second)
    assert token_of(login).value == second


@pytest.mark.parametrize(
    ("change", "output"),
    [
        ({f"{PREFIX}method": "default"}, "sasl.oauthbearer.method: only oidc is supported, found 'default'"),
        ({f"{PREFIX}token.endpoint.url": "ftp://a"}, "OAUTHBEARER needs sasl.oauthbearer.token.endpoint.url: https://"),
        ({f"{PREFIX}client.id": ""}, "OAUTHBEARER needs sasl.oauthbearer.client.id"),
        ({f"{PREFIX}client.secret": ""}, "OAUTHBEARER needs sasl.oauthbearer.client.secret"),
        ({f"{PREFIX}extensions": "a=1,2"}, "sasl.oauthbearer.extensions: expected name=value,… of letters, found '2'"),
        (
            {f"{PREFIX}extensions": "auth=x"},
            "sasl.oauthbearer.extensions: expected name=value,… of letters, found 'auth'",
        ),
        ({f"{PREFIX}clientid": "x"}, "unknown client setting 'sasl.oauthbearer.clientid'; did you mean"),
    ],
)
def test_settings_that_cannot_be(change: dict[str, str], output: str) -> None:
    with pytest.raises(BadSetting) as raised:
        client_settings(settings("https://tokens.test/") | change)

    assert str(raised.value).startswith(output)


def test_secrets_come_from_files_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text("from a folder\n")
    (tmp_path / "more.properties").write_text("# a comment\nkey = from a file\n")
    monkeypatch.setenv("PLANTED", "from the environment")

    def password(text: str) -> ClientSettings:
        given = {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
        return client_settings({**given, "sasl.password": text})

    found = [
        password(text).login
        for text in (
            "${env:PLANTED}",
            f"${{directory:{tmp_path}:password}}",
            f"${{file:{tmp_path}/more.properties:key}}",
        )
    ]

    assert [login.password for login in found] == ["from the environment", "from a folder", "from a file"]
    assert "from a file" not in repr(found[2])
    for text, output in (
        ("${env:NOSUCH}", "sasl.password: ${env:NOSUCH}: the environment variable NOSUCH is not set"),
        ("${directory:/nosuch:x}", "sasl.password: ${directory:/nosuch:x}: /nosuch/x: No such file or directory"),
        ("${file:/nosuch}", "sasl.password: ${file:/nosuch}: expected ${file:PATH:KEY}"),
        (f"${{file:{tmp_path}/more.properties:no}}", "more.properties has no line no="),
    ):
        with pytest.raises(BadSetting) as raised:
            password(text)
        assert output in str(raised.value)


def test_nothing_that_is_printed_shows_a_secret() -> None:
    held = client_settings(settings("https://tokens.test/"))

    assert SECRET not in repr(held)
    assert json.dumps(SECRET) not in repr(held)
