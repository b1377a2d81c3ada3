"""Tokens are requested from an endpoint, parsed and refreshed."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from sluicegate.pipeline.kafka.settings import BadSetting, ClientSettings, client_settings
from sluicegate.pipeline.kafka.tokens import Bearer, token_of
from sluicegate.proxy.tokens.cache import TokenMissing
from tests.broker.certificates import Authority
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.pipeline.bearers import CLIENT, SECRET, ScriptedTokenEndpoint, token_endpoint, unsecured_token

PREFIX = "sasl.oauthbearer."


@pytest.fixture
def endpoint() -> Iterator[ScriptedTokenEndpoint]:
    with token_endpoint() as found:
        yield found


def client_settings_file(url: str, **more: str) -> dict[str, str]:
    """Return client settings as in a properties file."""
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


def bearer_login(url: str, **more: str) -> Bearer:
    login = client_settings(client_settings_file(url, **more)).login
    assert isinstance(login, Bearer)
    return login


def test_token_requests_equal_those_of_librdkafka(endpoint: ScriptedTokenEndpoint) -> None:
    theirs = Producer({"bootstrap.servers": f"127.0.0.1:{free_ports(1)}", **client_settings_file(endpoint.url)})
    eventually(lambda: len(endpoint.given) == 1 or theirs.poll(0.1) < 0, what="a token for librdkafka")

    found = token_of(bearer_login(endpoint.url))

    assert found.value == endpoint.given[1]
    assert endpoint.asked[0] == endpoint.asked[1]
    assert endpoint.asked[1] == {"grant_type": ["client_credentials"], "scope": ["kafka read"]}


def test_token_is_cached_for_most_of_its_lifetime(endpoint: ScriptedTokenEndpoint) -> None:
    endpoint.lasts_seconds = 2.0
    first, again = token_of(bearer_login(endpoint.url)), token_of(bearer_login(endpoint.url))

    assert first.value == again.value
    assert len(endpoint.given) == 1
    eventually(lambda: token_of(bearer_login(endpoint.url)).value != first.value, what="another token")


@pytest.mark.parametrize(
    ("response", "output"),
    [
        (
            (302, {"Location": "http://127.0.0.1:9/"}, b""),
            "the endpoint redirects (HTTP 302), and redirects are not followed",
        ),
        ((200, {}, b"<html>"), "the response has no valid access_token"),
        ((200, {}, b'{"access_token": "a", "expires_in": "soon"}'), "the response has no valid expires_in"),
        ((200, {}, b"x" * ((1 << 16) + 1)), "the server sent a response of more than 65536 bytes"),
        ((400, {}, b'{"error": "invalid_scope"}'), "(HTTP 400, invalid_scope): check sasl.oauthbearer.token.endpoint"),
    ],
)
def test_invalid_token_response_is_a_permanent_error(
    endpoint: ScriptedTokenEndpoint, response: tuple[int, dict[str, str], bytes], output: str
) -> None:
    endpoint.response = response

    with pytest.raises(TokenMissing) as raised:
        token_of(bearer_login(endpoint.url))

    assert output in str(raised.value)
    assert not raised.value.is_temporary


@pytest.mark.parametrize("stated", ['"3600"', "3600", "3600.5", "1e300"])
def test_accepts_expires_in_as_text(endpoint: ScriptedTokenEndpoint, stated: str) -> None:
    endpoint.response = 200, {}, b'{"access_token": "a", "expires_in": %s}' % stated.encode()

    found = token_of(bearer_login(endpoint.url))

    assert found.until > time.time() + 0.75 * 3600


def test_an_unknown_client_gets_the_endpoints_error_without_the_secret(endpoint: ScriptedTokenEndpoint) -> None:
    with pytest.raises(TokenMissing) as raised:
        token_of(bearer_login(endpoint.url, **{f"{PREFIX}client.secret": "wrong"}))

    assert str(raised.value) == (
        f"token endpoint {endpoint.url}: the endpoint grants no token (HTTP 401, invalid_client): "
        f"check {PREFIX}token.endpoint.url, {PREFIX}client.id, {PREFIX}client.secret and {PREFIX}scope"
    )


@pytest.mark.parametrize("status", [429, 503])
def test_server_errors_of_a_token_endpoint_are_temporary(endpoint: ScriptedTokenEndpoint, status: int) -> None:
    endpoint.response = (status, {}, b"")
    login = bearer_login(endpoint.url)

    with pytest.raises(TokenMissing, match=rf"the endpoint failed \(HTTP {status}\)") as raised:
        token_of(login)
    with pytest.raises(TokenMissing, match="Connection refused") as refused:
        token_of(bearer_login(f"http://127.0.0.1:{free_ports(1)}/"))

    assert raised.value.is_temporary
    assert refused.value.is_temporary
    endpoint.response = None
    found: list[str] = []
    eventually(
        lambda: found.append(respond_with_token_or_pause(login)) or found[-1] != "", what="a token after the pause"
    )
    assert found[-1] == endpoint.given[0]


def respond_with_token_or_pause(login: Bearer) -> str:
    try:
        return token_of(login).value
    except TokenMissing:
        return ""


def test_requests_token_over_https_with_private_certificate_authority(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with token_endpoint(authority.sign("tokens")) as endpoint:
        with pytest.raises(TokenMissing, match=r"name its CA in https\.ca\.location"):
            token_of(bearer_login(endpoint.url))

        found = token_of(bearer_login(endpoint.url, https_ca_location=str(authority.file)))

        assert found.value == endpoint.given[0]


def test_a_token_file_is_read_at_each_login(tmp_path: Path) -> None:
    file, first, second = tmp_path / "a token", unsecured_token(), unsecured_token("other")
    login = client_settings({
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "OAUTHBEARER",
        f"{PREFIX}token.endpoint.url": file.as_uri(),
    }).login  # fmt: skip
    assert isinstance(login, Bearer)

    with pytest.raises(TokenMissing, match="a token cannot be read: No such file or directory"):
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
def test_rejects_invalid_settings_of_token_endpoints(change: dict[str, str], output: str) -> None:
    with pytest.raises(BadSetting) as raised:
        client_settings(client_settings_file("https://tokens.test/") | change)

    assert str(raised.value).startswith(output)


def test_secrets_come_from_files_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "password").write_text("from a folder\n")
    (tmp_path / "more.properties").write_text("# a comment\nkey = from a file\n")
    monkeypatch.setenv("PLANTED", "from the environment")

    def settings_with_password(text: str) -> ClientSettings:
        given = {"security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
        return client_settings({**given, "sasl.password": text})

    found = [
        settings_with_password(text).login
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
            settings_with_password(text)
        assert output in str(raised.value)


def test_printed_settings_contain_no_secret() -> None:
    held = client_settings(client_settings_file("https://tokens.test/"))

    assert SECRET not in repr(held)
    assert json.dumps(SECRET) not in repr(held)
