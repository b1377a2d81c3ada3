"""The broker and the proxy derive the same principal from an OAUTHBEARER token."""

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluicegate.protocol.messages.handshake import (
    SASL_AUTHENTICATE_REQUEST,
    SASL_AUTHENTICATE_RESPONSE,
    SASL_HANDSHAKE_REQUEST,
    SASL_HANDSHAKE_RESPONSE,
)
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from tests.broker.authorizer_log import AUTHORIZER, PROGRAM, writers_of
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.broker.security import bearer_login, security_settings
from tests.integration.topics import DEFAULTS
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, produce_body, topic_data

_SETTINGS = security_settings("SASL_PLAINTEXT", "OAUTHBEARER", oauthbearer=bearer_login("preferred_username")) | {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:broker;User:etl;User:ANONYMOUS",
    "connections.max.reauth.ms": "3600000",
}
_EXEMPT = [{"principal": "User:backfill"}, {"principal": "User:mirror"}]
_STORED, _NOT_AUTHORISED, _TOO_OLD = 0, 29, 32
_HANDSHAKE, _AUTHENTICATE = 17, 36
_HOUR = 3600


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("bearer"), settings=_SETTINGS, program=PROGRAM)
    try:
        yield kafka.start()
    finally:
        kafka.stop()


def _proxy(broker: Kafka, folder: Path, exempt: list[dict[str, str]], **listen: str) -> ProxyProcess:
    upstream = {"bootstrap": [broker.bootstrap], "brokers": {1: broker.bootstrap}}
    proxy = ProxyProcess(folder, broker.bootstrap, {"upstream": upstream, "defaults": DEFAULTS, "exempt": exempt})
    proxy.config["listen"] |= listen
    return proxy


@pytest.fixture(scope="module")
def proxy_without_claim(broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    proxy = _proxy(broker, tmp_path_factory.mktemp("without"), _EXEMPT)
    try:
        yield proxy.start()
    finally:
        proxy.stop()


@pytest.fixture(scope="module")
def proxy_with_claim(broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    claim = {"sasl.oauthbearer.sub.claim.name": "preferred_username"}
    proxy = _proxy(broker, tmp_path_factory.mktemp("with"), _EXEMPT, **claim)
    try:
        yield proxy.start()
    finally:
        proxy.stop()


def _token(preferred: str, subject: str, lasts: int = _HOUR, before: bytes = b"") -> bytes:
    """Return a client's first message with an unsecured token; `before` precedes its `auth` pair."""
    now = int(time.time())
    claims = {"sub": subject, "preferred_username": preferred, "iat": now - 2 * _HOUR, "exp": now + lasts}
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, claims)]
    return b"n,,\x01" + before + b"auth=Bearer " + b".".join(parts) + b".\x01\x01"


class _Client(RawClient):
    def send_handshake(self) -> None:
        body = SASL_HANDSHAKE_REQUEST.build({"mechanism": "OAUTHBEARER"}, 1)
        response = self.call(_HANDSHAKE, 1, SASL_HANDSHAKE_RESPONSE, body)
        assert isinstance(response, dict)
        assert response["error_code"] == 0

    def send_token(self, token: bytes) -> bytes:
        """Send a token. Return the broker's error, or nothing if it accepts the token."""
        body = SASL_AUTHENTICATE_REQUEST.build({"auth_bytes": token}, 2)
        response = self.call(_AUTHENTICATE, 2, SASL_AUTHENTICATE_RESPONSE, body)
        assert isinstance(response, dict)
        assert response["error_code"] == 0, response
        return bytes(response["auth_bytes"])

    def store_record(self, topic: str, timestamp: int) -> int:
        """Send a record with this timestamp and return its error code."""
        response = self.produce(9, [topic_data(topic, (0, batch([Rec(timestamp)])))])
        assert isinstance(response, dict)
        code: int = response["responses"][0]["partition_responses"][0]["error_code"]
        return code


def _topic(proxy: ProxyProcess, name: str) -> str:
    with _Client(proxy.bootstrap) as client:
        client.send_handshake()
        assert client.send_token(_token("etl", "etl")) == b""
        eventually(lambda: client.metadata(name)["topics"][0]["error_code"] == 0, what="the topic")
        eventually(lambda: client.store_record(name, time.time_ns() // 1_000_000) == _STORED, what="its leader")
    return name


def _code(proxy: ProxyProcess, topic: str, *tokens: bytes) -> int:
    """Return the code of an old record after these tokens; the broker accepts only the last."""
    with _Client(proxy.bootstrap) as client:
        client.send_handshake()
        results = [client.send_token(token) for token in tokens]
        assert results[-1] == b""
        assert all(b"invalid_token" in each for each in results[:-1])
        return client.store_record(topic, time.time_ns() // 1_000_000 - 2 * 86_400_000)


def test_a_claim_that_the_broker_does_not_use_exempts_no_client(proxy_without_claim: ProxyProcess) -> None:
    """For a token with subject backfill the broker authorises User:etl, or a principal that may not write."""
    topic = _topic(proxy_without_claim, "unverified")

    assert _code(proxy_without_claim, topic, _token("etl", "backfill")) == _TOO_OLD

    (event,) = proxy_without_claim.wait_for_violations(topic, 1)
    assert event["principal"] == "User:backfill (unverified)"
    line = proxy_without_claim.wait_for_line('"principal": "User:backfill (unverified)", "reason"')
    assert "principal unverified" in line
    assert "listen.sasl.oauthbearer.sub.claim.name" in line
    assert "listen does not declare how the brokers" in proxy_without_claim.wait_for_line("configuration warning")


@pytest.mark.parametrize(
    ("subject", "preferred", "code"),
    [("backfill", "etl", _TOO_OLD), ("etl", "etl", _TOO_OLD), ("etl", "backfill", _NOT_AUTHORISED)],
)
def test_the_claim_that_the_broker_uses_is_the_principal(
    broker: Kafka, proxy_with_claim: ProxyProcess, subject: str, preferred: str, code: int
) -> None:
    """An exempt client gets the broker's own error: User:backfill may not write."""
    topic = _topic(proxy_with_claim, "verified")
    before = len(proxy_with_claim.violations_of(topic))

    assert _code(proxy_with_claim, topic, _token(preferred, subject)) == code

    if code == _TOO_OLD:
        assert proxy_with_claim.wait_for_violations(topic, before + 1)[-1]["principal"] == "User:etl"
    else:
        assert f"User:{preferred}" in writers_of(broker, topic)


@pytest.mark.parametrize(("user", "code"), [("etl", _TOO_OLD), ("backfill", None)])
def test_records_after_a_reauthentication_are_validated_as_the_accepted_user(
    proxy_with_claim: ProxyProcess, user: str, code: int | None
) -> None:
    """KIP-368: the broker rejects a login as another user and closes, after it has read the requests that follow the
    login."""
    topic = _topic(proxy_with_claim, f"again-{user}")
    with _Client(proxy_with_claim.bootstrap) as client:
        client.send_handshake()
        assert client.send_token(_token("etl", "etl")) == b""
        client.send(_HANDSHAKE, 1, SASL_HANDSHAKE_REQUEST.build({"mechanism": "OAUTHBEARER"}, 1))
        client.send(_AUTHENTICATE, 2, SASL_AUTHENTICATE_REQUEST.build({"auth_bytes": _token(user, "backfill")}, 2))
        old = batch([Rec(time.time_ns() // 1_000_000 - 2 * 86_400_000)])
        sent = client.send(0, 9, produce_body(9, [topic_data(topic, (0, old))]))
        assert isinstance(client.receive(), bytes)  # the handshake's response
        is_accepted = isinstance(client.receive(), bytes)
        response = client.response_to(sent, 0, 9, PRODUCE_RESPONSE)

    assert is_accepted is (user == "etl")
    found = None if isinstance(response, str) else response["responses"][0]["partition_responses"][0]["error_code"]
    assert found == code
    assert proxy_with_claim.wait_for_violations(topic, 1)[0]["principal"] == "User:etl"


def test_an_exempt_principal_with_permission_stores_an_old_record(broker: Kafka, tmp_path: Path) -> None:
    proxy = _proxy(
        broker, tmp_path, [{"principal": "User:etl"}], **{"sasl.oauthbearer.sub.claim.name": "preferred_username"}
    )
    try:
        proxy.start()
        assert _code(proxy, _topic(proxy, "exempt"), _token("etl", "somebody")) == _STORED
    finally:
        proxy.stop()


def test_the_name_in_a_rejected_token_is_not_used(proxy_with_claim: ProxyProcess) -> None:
    """Kafka accepts a second token after a rejected token, without another handshake."""
    topic = _topic(proxy_with_claim, "rejected")

    code = _code(proxy_with_claim, topic, _token("mirror", "mirror", lasts=-_HOUR), _token("etl", "etl"))

    assert code == _TOO_OLD
    assert proxy_with_claim.wait_for_violations(topic, 1)[0]["principal"] == "User:etl"


@pytest.mark.parametrize("wrap", [b"x=%s\x01", b"%s\x01"])
def test_the_token_that_the_broker_uses_counts_if_a_message_has_several(
    proxy_with_claim: ProxyProcess, wrap: bytes
) -> None:
    """The second token is in an extension's value, or in an `auth` pair before another such pair."""
    fake = _token("mirror", "mirror").removeprefix(b"n,,\x01").removesuffix(b"\x01\x01")
    topic = _topic(proxy_with_claim, "several")
    before = len(proxy_with_claim.violations_of(topic))

    assert _code(proxy_with_claim, topic, _token("etl", "etl", before=wrap % fake)) == _TOO_OLD

    assert proxy_with_claim.wait_for_violations(topic, before + 1)[-1]["principal"] == "User:etl"
