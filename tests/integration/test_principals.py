"""For each kind of login, the principal in the broker's authorizer log equals the principal that the proxy derives.

The broker has two listeners. At the second, a principal builder names users after accounts, as a service does whose
user names are keys. A declaration for the first listener would be wrong there.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from tests.broker.authorizer_log import AUTHORIZER, PROGRAM, writers_of
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.broker.security import SCRAM_LOGIN, bearer_login, plain_login, security_settings
from tests.integration.condition_views import wait_until_begun
from tests.integration.test_doctor import run_doctor
from tests.integration.topics import DEFAULTS
from tests.oracle.kafka_java import KAFKA_NEW
from tests.pipeline.bearers import unsecured_token
from tests.wire.sasl_client import TOKEN_AUTH, DelegationToken, SaslClient

if TYPE_CHECKING:
    from playwright.sync_api import Page

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_CLAIM = "preferred_username"
_BUILDER = "listener.name.relayed.principal.builder.class"
_DECLARED = {
    "user_name_is_principal": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
    "sasl.oauthbearer.sub.claim.name": _CLAIM,
}
_STORED, _TOO_OLD = 0, 32
_TWO_DAYS_MS = 2 * 86_400_000

Login = Callable[[SaslClient, str], str | None]


def _settings() -> dict[str, str]:
    settings = security_settings(
        "SASL_PLAINTEXT",
        *_MECHANISMS,
        plain=plain_login(admin="a", alice="secret", bob="secret"),
        scram_sha_256=SCRAM_LOGIN,
        scram_sha_512=SCRAM_LOGIN,
        oauthbearer=bearer_login(_CLAIM),
    )
    own = "listener.name.plaintext."
    at_second = {name.replace(own, "listener.name.relayed."): each for name, each in settings.items() if own in name}
    protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT,RELAYED:SASL_PLAINTEXT"
    return (
        settings
        | at_second
        | {
            "listener.security.protocol.map": protocols,
            _BUILDER: "PrintingAuthorizer$Accounts",
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:admin;User:alice;User:bob;User:account-alice;User:account-admin;User:ANONYMOUS",
            "sasl.oauthbearer.sub.claim.name": _CLAIM,  # as in Kafka's login module for unsecured tokens
            "delegation.token.secret.key": "the brokers' key",
            "connections.max.reauth.ms": "3600000",
        }
    )


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    folder = tmp_path_factory.mktemp("principals")
    kafka = Kafka(KAFKA_NEW, folder, settings=_settings(), program=PROGRAM, relay_host="127.0.0.1")
    try:
        kafka.start()
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        admin = AdminClient(
            {"bootstrap.servers": kafka.bootstrap, "sasl.username": "admin", "sasl.password": "a"} | login
        )
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change = UserScramCredentialUpsertion("alice", ScramCredentialInfo(mechanism, 4096), b"secret")
            for done in admin.alter_user_scram_credentials([change]).values():
                done.result(30)
        yield kafka
    finally:
        kafka.stop()


@pytest.fixture(scope="module")
def delegation_token(broker: Kafka) -> DelegationToken:
    with SaslClient(broker.bootstrap) as client:
        assert client.plain("alice", "secret") is None
        made = client.new_delegation_token()

    def is_known() -> bool:  # the broker learns about the token from the metadata log
        with SaslClient(broker.bootstrap) as client:
            return client.scram("SCRAM-SHA-256", made.token_id, made.password, TOKEN_AUTH) is None

    eventually(is_known, what="the token")
    return made


def _proxy(bootstrap: str, folder: Path, *exempt: str, **listen: Any) -> ProxyProcess:
    settings = {"defaults": DEFAULTS, "exempt": [{"principal": each} for each in exempt]}
    proxy = ProxyProcess(folder, bootstrap, settings)
    proxy.config["upstream"]["sasl"] = {"mechanism": "PLAIN", "username": "admin", "password": "a"}
    proxy.config["listen"] |= listen
    return proxy


@pytest.fixture(scope="module")
def proxy_with_declaration(broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy that knows how the broker derives principals, and exempts User:bob."""
    proxy = _proxy(broker.bootstrap, tmp_path_factory.mktemp("declared"), "User:bob", **_DECLARED)
    try:
        yield proxy.start()
    finally:
        proxy.stop()


@pytest.fixture(scope="module")
def proxy_without_declaration(broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy at the listener that names accounts, without a declaration of the listener. It exempts all names
    that it may derive."""
    names = ("User:alice", "User:account-alice", "User:*", "*unverified*", "User:ANONYMOUS", "unknown*")
    proxy = _proxy(broker.relayed_bootstrap, tmp_path_factory.mktemp("undeclared"), *names)
    try:
        yield proxy.start()
    finally:
        proxy.stop()


def _plain(client: SaslClient, _: str) -> str | None:
    return client.plain("alice", "secret")


def _scram_256(client: SaslClient, _: str) -> str | None:
    return client.scram("SCRAM-SHA-256", "alice", "secret")


def _scram_512(client: SaslClient, _: str) -> str | None:
    return client.scram("SCRAM-SHA-512", "alice", "secret")


def _bearer(client: SaslClient, _: str) -> str | None:
    return client.bearer(f"n,,\1auth=Bearer {unsecured_token('subject', **{_CLAIM: 'alice'})}\1\1".encode())


def _with(mechanism: str, nonce: str = "nonce") -> Callable[[DelegationToken], Login]:
    return lambda own: lambda client, _: client.scram(mechanism, own.token_id, own.password, TOKEN_AUTH, nonce)


_LOGINS: dict[str, Login] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram_256,
    "SCRAM-SHA-512": _scram_512,
    "OAUTHBEARER": _bearer,
}
_TOKEN_LOGINS = {
    "SCRAM-SHA-256": _with("SCRAM-SHA-256"),
    "SCRAM-SHA-512": _with("SCRAM-SHA-512"),
    "its extension after 9,000 bytes": _with("SCRAM-SHA-256", "x" * 9000),
}


def _now() -> int:
    return time.time_ns() // 1_000_000


def _codes(proxy: ProxyProcess, topic: str, login: Login) -> tuple[int | None, str | None]:
    """Log in, store a record, and send an old one. Return its error code, and the principal in the live view."""
    with SaslClient(proxy.bootstrap) as client:
        assert login(client, topic) is None
        eventually(lambda: client.metadata(topic)["topics"][0]["error_code"] == 0, what="the topic")
        eventually(lambda: client.code_of(topic, _now()) == _STORED, what="its leader")
        code = client.code_of(topic, _now() - _TWO_DAYS_MS)
        own = client.socket.getsockname()[1]
        listed = json.loads(proxy.get("/api/live")[1])["connections"]["listed"]
        (shown,) = (each["principal"] for each in listed if each["client_address"].endswith(f":{own}"))
        return code, shown


@pytest.mark.parametrize("mechanism", _LOGINS)
def test_a_declared_principal_equals_that_of_the_brokers_authorizer(
    broker: Kafka, proxy_with_declaration: ProxyProcess, mechanism: str
) -> None:
    topic = f"declared-{mechanism}"

    code, shown = _codes(proxy_with_declaration, topic, _LOGINS[mechanism])

    (principal,) = writers_of(broker, topic)
    assert (code, shown, principal) == (_TOO_OLD, "User:alice", "User:alice")
    assert {event["principal"] for event in proxy_with_declaration.wait_for_violations(topic, 1)} == {principal}


@pytest.mark.parametrize("way", _TOKEN_LOGINS)
def test_the_owner_of_a_delegation_token_is_not_known_to_the_proxy(
    broker: Kafka, proxy_with_declaration: ProxyProcess, delegation_token: DelegationToken, way: str
) -> None:
    """KIP-48: the broker authorizes the token's owner, and the user name is the token's id."""
    topic = f"token-{way[:13].replace(' ', '-')}"

    code, shown = _codes(proxy_with_declaration, topic, _TOKEN_LOGINS[way](delegation_token))

    is_read = way in _MECHANISMS
    assert writers_of(broker, topic) == {"User:alice"}
    assert code == _TOO_OLD
    assert shown == (f"User:{delegation_token.token_id} (unverified)" if is_read else "unknown (unverified)")
    assert {event["principal"] for event in proxy_with_declaration.wait_for_violations(topic, 1)} == {shown}


@pytest.mark.parametrize("mechanism", _LOGINS)
def test_without_a_declaration_no_exemption_applies(
    broker: Kafka, proxy_without_declaration: ProxyProcess, mechanism: str
) -> None:
    """The broker authorizes the account of the key, a name that no message contains."""
    topic = f"undeclared-{mechanism}"

    code, shown = _codes(proxy_without_declaration, topic, _LOGINS[mechanism])

    assert writers_of(broker, topic) == {"User:account-alice"}
    assert code == _TOO_OLD
    name = "subject" if mechanism == "OAUTHBEARER" else "alice"
    assert shown == f"User:{name} (unverified)"
    assert {event["principal"] for event in proxy_without_declaration.wait_for_violations(topic, 1)} == {shown}
    assert "principal unverified" in proxy_without_declaration.wait_for_line(f'"principal": "{shown}", "reason"')


def test_a_condition_reports_user_names_that_are_not_declared(
    broker: Kafka, tmp_path: Path, web_ui: "Page | None"
) -> None:
    proxy = _proxy(broker.relayed_bootstrap, tmp_path, "User:alice")
    try:
        proxy.start()
        with SaslClient(proxy.bootstrap) as client:
            assert _plain(client, "") is None
            wait_until_begun(proxy, "principal_unverified", web_ui)
        status, body = proxy.get("/readyz")
    finally:
        proxy.stop()

    assert status == 200
    assert "listen.user_name_is_principal" in body


def test_a_condition_reports_delegation_tokens(
    proxy_with_declaration: ProxyProcess, delegation_token: DelegationToken
) -> None:
    active = 'sluicegate_condition{condition="principal_unverified",subject="delegation_token"} 1'
    with SaslClient(proxy_with_declaration.bootstrap) as client:
        assert _TOKEN_LOGINS["SCRAM-SHA-512"](delegation_token)(client, "") is None

        eventually(lambda: active in proxy_with_declaration.get("/metrics")[1], what="the condition")


@pytest.mark.parametrize("first", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("user", "code"), [("alice", _TOO_OLD), ("bob", None)])
def test_a_login_again_as_another_user_is_rejected_and_exempts_nothing(
    broker: Kafka, proxy_with_declaration: ProxyProcess, first: str, user: str, code: int | None
) -> None:
    """KIP-368: the broker rejects such a login and closes the connection. User:bob is exempt, User:alice is not."""
    topic = f"again-{first}-{user}"
    _codes(proxy_with_declaration, topic, _LOGINS[first])
    before = len(proxy_with_declaration.violations_of(topic))
    with SaslClient(proxy_with_declaration.bootstrap) as client:
        assert _LOGINS[first](client, topic) is None
        error = client.plain(user, "secret") if first == "PLAIN" else client.scram(first, user, "secret")
        found = client.code_of(topic, _now() - _TWO_DAYS_MS)

    assert found == code
    assert (error is None) is (user == "alice")
    if user == "alice":
        events = proxy_with_declaration.wait_for_violations(topic, before + 1)
        assert {event["principal"] for event in events} == {"User:alice"}
    assert writers_of(broker, topic) == {"User:alice"}


def test_a_request_sent_with_a_login_as_another_user_is_validated_as_the_first(
    proxy_with_declaration: ProxyProcess,
) -> None:
    """The login and the request are sent before the broker responds."""
    topic = "behind-a-login"
    _codes(proxy_with_declaration, topic, _plain)
    before = len(proxy_with_declaration.violations_of(topic))
    with SaslClient(proxy_with_declaration.bootstrap) as client:
        assert _plain(client, topic) is None
        client.send_plain_unanswered("bob", "secret")
        client.send_record(topic, _now() - _TWO_DAYS_MS)
        eventually(lambda: len(proxy_with_declaration.violations_of(topic)) > before, what="the event")

    assert proxy_with_declaration.violations_of(topic)[-1]["principal"] == "User:alice"


def test_doctor_finds_the_principal_builder_that_a_declaration_contradicts(
    broker: Kafka, proxy_with_declaration: ProxyProcess, proxy_without_declaration: ProxyProcess, tmp_path: Path
) -> None:
    """Both listeners belong to one broker, and its settings name the principal builder of the second listener."""
    _, found = run_doctor(tmp_path, proxy_with_declaration.config)

    level, words = found["broker principals"]
    assert level == "warning"
    assert words.startswith(f"broker 1 has {_BUILDER}=PrintingAuthorizer$Accounts: its principals may differ from ")
    assert found["principals"][0] == "ok"
    assert run_doctor(tmp_path, proxy_without_declaration.config)[1]["principals"][0] == "warning"
