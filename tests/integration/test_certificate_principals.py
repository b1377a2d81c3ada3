"""A broker and a proxy with the same ssl.principal.mapping.rules derive the same principals from certificates."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker.authorizer_log import AUTHORIZER, PROGRAM, writers_of
from tests.broker.certificates import Authority, Certificate, kafka_tls
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.broker.security import security_settings
from tests.clients.programs import java_record, javascript_record
from tests.integration.secure_brokers import TOPIC, now_ms, send
from tests.integration.topics import DEFAULTS, UNVALIDATED
from tests.oracle.kafka_java import KAFKA_NEW

_RULES = r"RULE:.*CN=svc-([a-z]+)(,.*)?$/team\/$1/U, RULE:.*CN=(broker|proxy)(,.*)?$/$1/"
_DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    folder = tmp_path_factory.mktemp("mapped")
    settings = {
        **security_settings("SSL"),
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:proxy;User:broker;User:TEAM/ETL;User:TEAM/BACKFILL;User:ANONYMOUS",
        "ssl.principal.mapping.rules": _RULES.replace("\\", "\\\\"),
        **kafka_tls(authority.sign("broker"), authority, "required"),
    }
    kafka = Kafka(KAFKA_NEW, folder, settings=settings, program=PROGRAM)
    try:
        yield kafka.start()
    finally:
        kafka.stop()


def _settings(authority: Authority, own: Certificate) -> dict[str, str]:
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.file),
        "ssl.certificate.location": str(own.chain),
        "ssl.key.location": str(own.key),
    }


@pytest.fixture
def proxy(broker: Kafka, authority: Authority, tmp_path: Path) -> Iterator[ProxyProcess]:
    exempt = [{"principal": "User:TEAM/BACKFILL"}]
    proxy = ProxyProcess(tmp_path, broker.bootstrap, {"defaults": DEFAULTS, "exempt": exempt})
    proxy.config["upstream"]["tls"] = {"ca_file": str(authority.file), **authority.sign("proxy").files}
    own = authority.sign("sluicegate").files
    proxy.config["listen"]["tls"] = {**own, "client_auth": "required", "client_ca_file": str(authority.file)}
    proxy.config["listen"]["ssl.principal.mapping.rules"] = _RULES
    try:
        yield proxy.start()
    finally:
        proxy.stop()


def test_broker_and_proxy_derive_the_same_principal_from_a_certificate(
    broker: Kafka, authority: Authority, proxy: ProxyProcess
) -> None:
    etl, backfill, stranger = (_settings(authority, authority.sign(each)) for each in ("svc-etl", "svc-backfill", "x"))
    direct = AdminClient({"bootstrap.servers": broker.bootstrap} | etl)
    for future in direct.create_topics([NewTopic(TOPIC, 1, 1, config=UNVALIDATED)]).values():
        future.result(30)

    straight = ProxyProcess(proxy.folder, broker.bootstrap)
    straight.bootstrap = broker.bootstrap
    assert send(straight, etl, now_ms()) == send(straight, backfill, now_ms()) == ["ok"]
    assert writers_of(broker, TOPIC) == {"User:TEAM/ETL", "User:TEAM/BACKFILL"}

    old = now_ms() - 2 * _DAY_MS
    assert send(proxy, etl, now_ms(), old) == ["ok", "INVALID_TIMESTAMP"]
    assert send(proxy, backfill, old) == ["ok"]
    (event,) = proxy.wait_for_violations(TOPIC, 1)
    assert event["principal"] == "User:TEAM/ETL"

    for address in (broker.bootstrap, proxy.bootstrap):  # no rule applies, so both reject the client
        with pytest.raises(KafkaException):
            AdminClient({"bootstrap.servers": address} | stranger).list_topics(timeout=3)
    proxy.wait_for_line("no rule of listen.ssl.principal.mapping.rules applies to the certificate ")
    eventually(lambda: proxy.metric("sluicegate_connections_rejected_total") >= 1, what="the count")


def _java(address: str, topic: str, timestamp: int, authority: Authority, own: Certificate) -> str:
    files = {name: value for name, value in kafka_tls(own, authority, "").items() if "store" in name}
    return java_record(address, topic, timestamp, {"security.protocol": "SSL", **files})


def _javascript(address: str, topic: str, timestamp: int, authority: Authority, own: Certificate) -> str:
    files = {"ca": authority.file, "cert": own.chain, "key": own.key}
    return javascript_record(address, topic, timestamp, {name: str(file) for name, file in files.items()})


@pytest.mark.long
@pytest.mark.parametrize("produce", [_java, _javascript])
def test_java_and_node_have_the_principal_that_the_brokers_authorizer_prints(
    broker: Kafka, authority: Authority, proxy: ProxyProcess, produce: Callable[..., str]
) -> None:
    topic, own = f"of{produce.__name__}", authority.sign("svc-etl")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap} | _settings(authority, own))
    for future in admin.create_topics([NewTopic(topic, 1, 1, config=UNVALIDATED)]).values():
        future.result(30)
    assert produce(broker.bootstrap, topic, now_ms(), authority, own) == "ok"
    (principal,) = writers_of(broker, topic)
    assert principal == "User:TEAM/ETL"

    assert produce(proxy.bootstrap, topic, now_ms(), authority, own) == "ok"
    outcome = produce(proxy.bootstrap, topic, now_ms() - 2 * _DAY_MS, authority, own)

    assert outcome in ("InvalidTimestampException", "INVALID_TIMESTAMP")
    (event,) = proxy.wait_for_violations(topic, 1)
    groups = json.loads(proxy.get("/api/live")[1])["violation_groups"]
    assert event["principal"] == groups[0]["example"]["principal"] == principal
