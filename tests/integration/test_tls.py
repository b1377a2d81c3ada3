"""TLS on both sides of the proxy, logins through it, and a broker with authorisation on that says whom it saw."""

import asyncio
import os
import shutil
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiokafka
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.broker.certificates import Authority, Certificate, kafka_tls
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.java import java_tool
from tests.integration.topics import DEFAULTS, UNJUDGED
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import CLOSED, PRODUCE, RawClient, produce_body, topic_data

PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOPIC = "guarded"
NOT_AUTHORISED, INVALID_TIMESTAMP = 29, 32
REAUTHENTICATE_MS = 1500


@dataclass(frozen=True)
class Guarded:
    """A broker that wants TLS, a login and permissions, and the authority of everybody here."""

    kafka: Kafka
    authority: Authority
    broker: Certificate
    proxy: Certificate

    def admin(self) -> AdminClient:
        return AdminClient(
            login("admin", "a")
            | {"bootstrap.servers": self.kafka.bootstrap, "ssl.ca.location": str(self.authority.file)}
            | {"ssl.certificate.location": str(self.proxy.chain), "ssl.key.location": str(self.proxy.key)}
        )


def login(user: str, password: str, mechanism: str = "PLAIN") -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority(folder)
    broker, proxy = authority.sign("broker"), authority.sign("proxy")
    settings = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.plaintext.plain.sasl.jaas.config": (
            f'{PLAIN_LOGIN} username="admin" password="a" user_admin="a" user_alice="secret" user_bob="secret";'
        ),
        "listener.name.plaintext.scram-sha-256.sasl.jaas.config": SCRAM_LOGIN,
        "listener.name.plaintext.scram-sha-512.sasl.jaas.config": SCRAM_LOGIN,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "connections.max.reauth.ms": str(REAUTHENTICATE_MS),
        **kafka_tls(broker, authority, "none"),  # a broker asks for no certificate where clients log in by SASL
    }
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("guarded"), settings=settings)
    try:
        found = Guarded(kafka.start(), authority, broker, proxy)
        prepare(found.admin())
        yield found
    finally:
        kafka.stop()


def prepare(admin: AdminClient) -> None:
    """The topic; alice may write and read it, bob may only look."""
    for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=UNJUDGED)]).values():
        future.result(30)
    rights = [
        ("User:alice", AclOperation.WRITE),
        ("User:alice", AclOperation.READ),
        ("User:alice", AclOperation.DESCRIBE),
        ("User:bob", AclOperation.DESCRIBE),
    ]
    acls = [
        AclBinding(ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, who, "*", operation, AclPermissionType.ALLOW)
        for who, operation in rights
    ]
    for done in admin.create_acls(acls).values():
        done.result(30)
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        change = UserScramCredentialUpsertion("alice", ScramCredentialInfo(mechanism, 4096), b"secret")
        for done in admin.alter_user_scram_credentials([change]).values():
            done.result(30)


def proxy_for(guarded: Guarded, folder: Path, **listen: Any) -> ProxyProcess:
    """A proxy in front of the guarded broker; `listen` goes over its listen section."""
    own = guarded.authority.sign("sluicegate", "127.0.0.1", "localhost", "*.brokers.test", "bootstrap.test")
    proxy = ProxyProcess(folder, guarded.kafka.bootstrap, {"defaults": DEFAULTS})
    proxy.config["upstream"] |= {
        "tls": {"ca_file": str(guarded.authority.file), **guarded.proxy.files},
        "sasl": {"mechanism": "PLAIN", "username": "admin", "password": "a"},
    }
    proxy.config["listen"] |= {"tls": {**own.files, **listen.pop("tls", {})}, **listen}
    return proxy


@pytest.fixture(scope="module")
def proxy(guarded: Guarded, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    process = proxy_for(guarded, tmp_path_factory.mktemp("proxy"))
    try:
        yield process.start()
    finally:
        process.stop()


def send(proxy: ProxyProcess, settings: dict[str, Any], *timestamps: int) -> list[str]:
    """What became of records with these times, each in a batch of its own."""
    outcomes: list[str] = []
    producer = Producer({"bootstrap.servers": proxy.bootstrap, "linger.ms": 0, "message.timeout.ms": 15_000} | settings)
    for timestamp in timestamps:
        producer.produce(
            TOPIC,
            b"v",
            timestamp=timestamp,
            on_delivery=lambda error, _: outcomes.append("ok" if error is None else error.name()),
        )
        assert producer.flush(30) == 0
    return outcomes


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_broker_sees_each_clients_own_principal(guarded: Guarded, proxy: ProxyProcess, mechanism: str) -> None:
    trusting = {"ssl.ca.location": str(guarded.authority.file)}
    seen = len(proxy.violations_of(TOPIC))

    alice = send(proxy, login("alice", "secret", mechanism) | trusting, now_ms(), now_ms() * 1_000_000)
    bob = send(proxy, login("bob", "secret") | trusting, now_ms() * 1_000_000)

    assert alice == ["ok", "INVALID_TIMESTAMP"]
    assert bob == ["TOPIC_AUTHORIZATION_FAILED"]  # the broker's word goes before ours
    eventually(lambda: len(proxy.violations_of(TOPIC)) == seen + 2, what="the events")
    assert [event["principal"] for event in proxy.violations_of(TOPIC)[seen:]] == ["User:alice", "User:bob"]
    assert "secret" not in proxy.log() + str(proxy.violations())


def test_a_wrong_password(guarded: Guarded, proxy: ProxyProcess) -> None:
    errors: list[KafkaError] = []
    trusting = {"ssl.ca.location": str(guarded.authority.file), "error_cb": errors.append}
    client = AdminClient({"bootstrap.servers": proxy.bootstrap} | login("alice", "wrong", "SCRAM-SHA-256") | trusting)

    with pytest.raises(KafkaException):
        client.list_topics(timeout=5)
    eventually(lambda: client.poll(0.1) or errors)

    assert errors[0].code() == KafkaError._AUTHENTICATION
    eventually(lambda: "login refused" in proxy.log())
    assert "alice" in next(line for line in proxy.log().splitlines() if "login refused" in line)


def test_a_client_that_does_not_know_the_ca(proxy: ProxyProcess, tmp_path: Path) -> None:
    errors: list[KafkaError] = []
    stranger = Authority(tmp_path, "stranger")
    settings = login("alice", "secret") | {"ssl.ca.location": str(stranger.file), "error_cb": errors.append}
    client = AdminClient({"bootstrap.servers": proxy.bootstrap} | settings)

    with pytest.raises(KafkaException):
        client.list_topics(timeout=3)
    eventually(lambda: client.poll(0.1) or errors)

    assert "certificate verify failed" in str(errors[0])
    eventually(lambda: "the peer does not trust the CA of our certificate" in proxy.log())


def test_a_plaintext_client_on_a_tls_port(proxy: ProxyProcess) -> None:
    with RawClient(proxy.bootstrap) as client:
        client.send(18, 0, b"")
        assert client.receive() != b""

    eventually(lambda: "the peer does not speak TLS" in proxy.log())


def test_clients_bring_certificates(guarded: Guarded, tmp_path: Path) -> None:
    client = guarded.authority.sign("client")
    tls = {"client_auth": "required", "client_ca_file": str(guarded.authority.file)}
    proxy = proxy_for(guarded, tmp_path, tls=tls)
    proxy.config["upstream"]["topic_settings"] = False
    trusting = {"ssl.ca.location": str(guarded.authority.file), "security.protocol": "SSL"}
    own = {"ssl.certificate.location": str(client.chain), "ssl.key.location": str(client.key)}
    try:
        proxy.start()
        without = AdminClient({"bootstrap.servers": proxy.bootstrap} | trusting)
        with pytest.raises(KafkaException):
            without.list_topics(timeout=3)
        bad = send(proxy, login("alice", "secret") | own | {"ssl.ca.location": trusting["ssl.ca.location"]}, 1)
    finally:
        proxy.stop()

    assert bad == ["INVALID_TIMESTAMP"]
    assert "the client sent no certificate, which client_auth requires" in proxy.log()


@pytest.fixture(scope="module")
def mutual_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kafka, Authority, Certificate]]:
    """A broker that knows its clients by their certificates alone, and lets only the proxy's write."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority(folder)
    broker, proxy = authority.sign("broker"), authority.sign("proxy")
    settings = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{proxy.subject};User:{broker.subject};User:ANONYMOUS".replace("\\", "\\\\"),
        **kafka_tls(broker, authority, "required"),
    }
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("mutual"), settings=settings)
    try:
        yield kafka.start(), authority, proxy
    finally:
        kafka.stop()


def test_a_broker_that_knows_certificates_sees_the_proxys_and_the_event_names_the_clients(
    mutual_broker: tuple[Kafka, Authority, Certificate], tmp_path: Path
) -> None:
    kafka, authority, certificate = mutual_broker
    client = authority.sign("client")
    proxy = ProxyProcess(tmp_path, kafka.bootstrap, {"defaults": DEFAULTS})
    proxy.config["upstream"]["tls"] = {"ca_file": str(authority.file), **certificate.files}
    tls = {**authority.sign("sluicegate").files, "client_auth": "required", "client_ca_file": str(authority.file)}
    proxy.config["listen"]["tls"] = tls
    settings = {
        "security.protocol": "SSL",
        "ssl.ca.location": str(authority.file),
        "ssl.certificate.location": str(client.chain),
        "ssl.key.location": str(client.key),
    }
    try:
        proxy.start()
        admin = AdminClient({"bootstrap.servers": proxy.bootstrap} | settings)
        for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=UNJUDGED)]).values():
            future.result(30)
        assert send(proxy, settings, now_ms(), now_ms() * 1000) == ["ok", "INVALID_TIMESTAMP"]
        eventually(lambda: proxy.violations_of(TOPIC), what="the event")
        straight = AdminClient(settings | {"bootstrap.servers": kafka.bootstrap})
        assert TOPIC not in straight.list_topics(timeout=10).topics  # the client's own certificate may nothing
    finally:
        proxy.stop()

    assert proxy.violations_of(TOPIC)[0]["principal"] == f"User:{client.subject}"


def test_certificates_are_read_again_when_the_file_changes(guarded: Guarded, tmp_path: Path) -> None:
    proxy = proxy_for(guarded, tmp_path)
    files = {name: tmp_path / name for name in ("certificate_file", "key_file")}
    expired = guarded.authority.sign("expired", expires=datetime.now(UTC) - timedelta(days=1))
    renewed = guarded.authority.sign("renewed")
    put(expired, files)
    proxy.config["listen"]["tls"] = {name: str(file) for name, file in files.items()}
    trusting = login("alice", "secret") | {"ssl.ca.location": str(guarded.authority.file)}
    try:
        proxy.start()
        errors: list[KafkaError] = []
        client = AdminClient({"bootstrap.servers": proxy.bootstrap, "error_cb": errors.append} | trusting)
        with pytest.raises(KafkaException):
            client.list_topics(timeout=3)
        eventually(lambda: client.poll(0.1) or errors)
        assert "certificate verify failed" in str(errors[0])
        eventually(lambda: "the peer says that our certificate has expired" in proxy.log())

        put(renewed, files)
        assert send(proxy, trusting, now_ms()) == ["ok"]

        files["key_file"].write_text("half a key")
        assert send(proxy, trusting, now_ms()) == ["ok"]
    finally:
        proxy.stop()

    assert "certificates read again" in proxy.log()
    assert "changed certificates cannot be used, going on with those before" in proxy.log()


def put(certificate: Certificate, files: dict[str, Path]) -> None:
    """As a renewal does: the new files take the place of the old ones."""
    for name, source in certificate.files.items():
        fresh = files[name].with_suffix(".new")
        shutil.copy(source, fresh)
        fresh.replace(files[name])


def test_a_broker_whose_ca_is_unknown_is_not_talked_to(guarded: Guarded, tmp_path: Path) -> None:
    proxy = proxy_for(guarded, tmp_path)
    proxy.config["upstream"]["tls"]["ca_file"] = str(Authority(tmp_path, "stranger").file)
    try:
        proxy.start(ready=False)
        eventually(lambda: "the certificate is not accepted: unable to get local issuer" in proxy.get("/readyz")[1])
    finally:
        proxy.stop()


def test_a_proxy_without_the_certificate_that_the_broker_wants(
    mutual_broker: tuple[Kafka, Authority, Certificate], tmp_path: Path
) -> None:
    kafka, authority, _ = mutual_broker
    proxy = ProxyProcess(tmp_path, kafka.bootstrap)
    proxy.config["upstream"]["tls"] = {"ca_file": str(authority.file)}
    try:
        proxy.start(ready=False)
        eventually(lambda: "wants one and got none" in proxy.get("/readyz")[1])
    finally:
        proxy.stop()


def test_clients_log_in_again_on_the_same_connection(guarded: Guarded, proxy: ProxyProcess) -> None:
    """KIP-368: the broker closes a connection that outlives its login; librdkafka does it anew in time."""
    outcomes: list[object] = []
    opened = proxy.metric("sluicegate_connections_total")
    producer = Producer(
        {"bootstrap.servers": proxy.bootstrap, "ssl.ca.location": str(guarded.authority.file)}
        | login("alice", "secret", "SCRAM-SHA-512")
    )
    end = time.monotonic() + 3 * REAUTHENTICATE_MS / 1000
    while time.monotonic() < end:
        producer.produce(TOPIC, b"v", on_delivery=lambda error, _: outcomes.append(error))
        assert producer.flush(30) == 0

    assert set(outcomes) == {None}
    assert proxy.metric("sluicegate_connections_total") - opened <= 3  # bootstrap and the broker, and no more


def test_acks_0_over_tls_arrives_before_the_connection_ends(
    mutual_broker: tuple[Kafka, Authority, Certificate], tmp_path: Path
) -> None:
    kafka, authority, certificate = mutual_broker
    proxy = ProxyProcess(tmp_path, kafka.bootstrap, {"defaults": DEFAULTS})
    proxy.config["upstream"]["tls"] = {"ca_file": str(authority.file), **certificate.files}
    own = {"ssl.certificate.location": str(certificate.chain), "ssl.key.location": str(certificate.key)}
    admin = AdminClient(
        {"bootstrap.servers": kafka.bootstrap, "security.protocol": "SSL", "ssl.ca.location": str(authority.file)} | own
    )
    for future in admin.create_topics([NewTopic("acks-0", 1, 1, config=UNJUDGED)]).values():
        future.result(30)
    try:
        proxy.start()
        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
            eventually(lambda: client.fetch_error("acks-0", 0) == 0, what="the partition's leader")
        good, bad = batch([Rec(now_ms())]), batch([Rec(1)])
        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
            for _ in range(20):
                client.send(PRODUCE, 9, produce_body(9, [topic_data("acks-0", (0, good))], acks=0))
        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
            client.send(PRODUCE, 9, produce_body(9, [topic_data("acks-0", (0, good))], acks=0))
            client.send(PRODUCE, 9, produce_body(9, [topic_data("acks-0", (0, bad))], acks=0))
            assert client.receive() == CLOSED

        with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
            eventually(lambda: len(client.log_of("acks-0", 0)) == 21 * len(good), what="all that was sent")
        eventually(lambda: proxy.metric("sluicegate_connections") == 0, what="no connection left")
    finally:
        proxy.stop()


# -- brokers by name -------------------------------------------------------------------------------------------------


@pytest.fixture
def named_proxy(
    mutual_broker: tuple[Kafka, Authority, Certificate], tmp_path: Path
) -> Iterator[tuple[ProxyProcess, Authority]]:
    """One TLS port; broker N is broker-N.brokers.test."""
    kafka, authority, certificate = mutual_broker
    proxy = ProxyProcess(tmp_path, kafka.bootstrap, {"defaults": DEFAULTS})
    proxy.config["upstream"]["tls"] = {"ca_file": str(authority.file), **certificate.files}
    own = authority.sign("sluicegate", "*.brokers.test", "bootstrap.test")
    listen = proxy.config["listen"]
    del listen["broker_ports"]
    listen |= {"tls": own.files, "broker_host": "broker-{node_id}.brokers.test", "advertised_host": "bootstrap.test"}
    try:
        yield proxy.start(), authority
    finally:
        proxy.stop()


def test_java_finds_each_broker_by_its_name_on_one_port(
    named_proxy: tuple[ProxyProcess, Authority], tmp_path: Path
) -> None:
    proxy, authority = named_proxy
    port = proxy.bootstrap.rpartition(":")[2]
    hosts, settings = tmp_path / "hosts", tmp_path / "client.properties"
    hosts.write_text("127.0.0.1 bootstrap.test broker-1.brokers.test\n")
    settings.write_text(f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={authority.file}\n")
    options = [f"-Djdk.net.hosts.file={hosts}"]
    servers = ("--bootstrap-server", f"bootstrap.test:{port}")

    java_tool(
        "org.apache.kafka.tools.TopicCommand",
        *(*servers, "--command-config", str(settings), "--create", "--topic", "named", "--partitions", "1"),
        options=options,
    )
    java_tool(
        "org.apache.kafka.tools.ConsoleProducer",
        *(*servers, "--topic", "named", "--command-config", str(settings)),
        stdin="one\ntwo\n",
        options=options,
    )
    read = java_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *(*servers, "--topic", "named", "--command-config", str(settings), "--from-beginning", "--max-messages", "2"),
        options=options,
    )

    assert read.split() == ["one", "two"]


def test_aiokafka_finds_each_broker_by_its_name_on_one_port(
    named_proxy: tuple[ProxyProcess, Authority], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, authority = named_proxy
    port = int(proxy.bootstrap.rpartition(":")[2])
    asked = resolve_here(monkeypatch)

    async def produce() -> object:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=f"bootstrap.test:{port}",
            security_protocol="SSL",
            ssl_context=ssl.create_default_context(cafile=authority.file),
        )
        await producer.start()
        try:
            return await producer.send_and_wait("aio", b"v")
        finally:
            await producer.stop()

    asyncio.run(produce())

    assert asked == {"bootstrap.test", "broker-1.brokers.test"}


def resolve_here(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names that end in .test are this machine; gives those that were asked for."""
    asked: set[str] = set()
    real = socket.getaddrinfo

    def here(host: Any, *rest: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if isinstance(name, str) and name.endswith(".test"):
            asked.add(name)
            host = "127.0.0.1"
        return real(host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", here)
    return asked


@pytest.mark.parametrize(("name", "served"), [("broker-1.brokers.test", True), ("broker-7.brokers.test", False)])
def test_a_name_leads_to_its_broker_or_nowhere(
    name: str, served: bool, named_proxy: tuple[ProxyProcess, Authority]
) -> None:
    proxy, authority = named_proxy
    context = ssl.create_default_context(cafile=authority.file)

    with RawClient(proxy.bootstrap) as client:
        client.socket = context.wrap_socket(client.socket, server_hostname=name)
        assert isinstance(client.api_versions(), dict) == served

    if not served:
        eventually(lambda: "no address is known" in proxy.log())


def test_files_that_cannot_be_used_are_named_at_the_start(tmp_path: Path, guarded: Guarded) -> None:
    proxy = proxy_for(guarded, tmp_path)
    proxy.config["listen"]["tls"]["key_file"] = str(guarded.broker.key)

    with pytest.raises(AssertionError, match="ended"):
        proxy.start()

    last = proxy.log().strip().splitlines()[-1]
    assert last.startswith("sluicegate: listen.tls: ")
    assert str(guarded.broker.key) in last
    assert last.endswith("the key is not that of the certificate")
    assert os.path.sep in last
