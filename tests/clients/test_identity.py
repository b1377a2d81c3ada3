"""Clients of three languages log in with OAUTHBEARER at a broker that takes a claim and has a very large node id."""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.authorizer_log import AUTHORIZER, PROGRAM, writers_of
from tests.broker.kafka import Kafka
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess
from tests.broker.security import bearer_login, secured
from tests.clients.programs import java_record, javascript_record
from tests.integration.topics import DEFAULTS, UNVALIDATED
from tests.oracle.kafka_java import KAFKA_NEW
from tests.pipeline.bearers import token

pytestmark = pytest.mark.long

_NODE = 2_000_000_000
_SUBJECT, _USER = "backfill", "etl"
_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
_SETTINGS = secured("SASL_PLAINTEXT", "OAUTHBEARER", oauthbearer=bearer_login("preferred_username")) | {
    "authorizer.class.name": AUTHORIZER,
    "super.users": f"User:broker;User:{_USER};User:ANONYMOUS",
}


def _token() -> str:
    return token(_SUBJECT, preferred_username=_USER)


def _settings(bootstrap: str) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (_token(), time.time() + 3600),
    }


def _python(bootstrap: str, topic: str, timestamp: int) -> str:
    outcomes: list[str] = []
    producer = Producer(_settings(bootstrap))
    producer.produce(
        topic, b"v", timestamp=timestamp, on_delivery=lambda e, _: outcomes.append("ok" if e is None else e.name())
    )
    assert producer.flush(60) == 0
    return outcomes[0]


def _java(bootstrap: str, topic: str, timestamp: int) -> str:
    claims = f'unsecuredLoginStringClaim_sub="{_SUBJECT}" unsecuredLoginStringClaim_preferred_username="{_USER}"'
    login = {"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": f"{_LOGIN} {claims};"}
    return java_record(bootstrap, topic, timestamp, {"security.protocol": "SASL_PLAINTEXT", **login})


def _javascript(bootstrap: str, topic: str, timestamp: int) -> str:
    return javascript_record(bootstrap, topic, timestamp, {"token": _token()})


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    folder = tmp_path_factory.mktemp("claims")
    kafka = Kafka(KAFKA_NEW, folder, settings=_SETTINGS, program=PROGRAM, first_id=_NODE)
    try:
        yield kafka.start()
    finally:
        kafka.stop()


@pytest.fixture(scope="module")
def proxy(broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    settings = {"defaults": DEFAULTS, "exempt": [{"principal": f"User:{_SUBJECT}"}]}
    proxy = ProxyProcess(tmp_path_factory.mktemp("proxy"), broker.bootstrap, settings)
    (file := proxy.folder / "token").write_text(token("broker", preferred_username="broker"))
    proxy.config["upstream"]["sasl"] = {"mechanism": "OAUTHBEARER", "token_file": str(file)}
    proxy.config["listen"]["broker_port_map"] = {_NODE: free_ports(1)}
    proxy.config["listen"]["sasl.oauthbearer.sub.claim.name"] = "preferred_username"
    try:
        yield proxy.start()
    finally:
        proxy.stop()


@pytest.mark.parametrize("produce", [_java, _python, _javascript])
def test_the_claim_decides_and_a_subject_that_is_exempt_does_not(
    broker: Kafka, proxy: ProxyProcess, produce: Callable[[str, str, int], str]
) -> None:
    """Broker and proxy both know User:etl; the token's subject, which `exempt` names, exempts no client."""
    topic = f"claims{produce.__name__}"
    admin = AdminClient(_settings(broker.bootstrap))
    for created in admin.create_topics([NewTopic(topic, 1, 1, config=UNVALIDATED)]).values():
        created.result(60)
    now = time.time_ns() // 1_000_000

    assert produce(proxy.bootstrap, topic, now) == "ok"
    outcome = produce(proxy.bootstrap, topic, now - 2 * 86_400_000)

    assert outcome in ("INVALID_TIMESTAMP", "InvalidTimestampException")
    assert {event["principal"] for event in proxy.wait_for_violations(topic, 1)} == {f"User:{_USER}"}
    assert writers_of(broker, topic) == {f"User:{_USER}"}
