"""Runs brokers that require TLS, logins and permissions, and the proxies in front of them."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
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
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.broker.security import SCRAM_LOGIN, plain_login, security_settings
from tests.integration.topics import DEFAULTS, UNVALIDATED
from tests.oracle.kafka_java import KAFKA_NEW

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOPIC = "guarded"
REAUTHENTICATE_MS = 1500


@dataclass(frozen=True)
class GuardedBroker:
    """A broker that requires TLS, a login and permissions, and the authority of all certificates."""

    kafka: Kafka
    authority: Authority
    broker: Certificate
    proxy: Certificate

    def admin(self) -> AdminClient:
        return AdminClient(
            client_login("admin", "a")
            | {"bootstrap.servers": self.kafka.bootstrap, "ssl.ca.location": str(self.authority.file)}
            | {"ssl.certificate.location": str(self.proxy.chain), "ssl.key.location": str(self.proxy.key)}
        )


def client_login(user: str, password: str, mechanism: str = "PLAIN") -> dict[str, str]:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedBroker]:
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority(folder)
    broker, proxy = authority.sign("broker"), authority.sign("proxy")
    settings = {
        **security_settings(
            "SASL_SSL",
            *MECHANISMS,
            plain=plain_login(admin="a", alice="secret", bob="secret"),
            scram_sha_256=SCRAM_LOGIN,
            scram_sha_512=SCRAM_LOGIN,
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "connections.max.reauth.ms": str(REAUTHENTICATE_MS),
        **kafka_tls(broker, authority, "none"),  # clients log in with SASL, without a certificate
    }
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("guarded"), settings=settings)
    try:
        found = GuardedBroker(kafka.start(), authority, broker, proxy)
        create_guarded_topic(found.admin())
        yield found
    finally:
        kafka.stop()


def create_guarded_topic(admin: AdminClient) -> None:
    """Create the topic: alice may write and read it, bob may only describe it."""
    for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=UNVALIDATED)]).values():
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


def proxy_for(guarded: GuardedBroker, folder: Path, **listen: Any) -> ProxyProcess:
    """Return a proxy in front of the guarded broker; `listen` is merged into its listen section."""
    own = guarded.authority.sign("sluicegate", "127.0.0.1", "localhost", "*.brokers.test", "bootstrap.test")
    proxy = ProxyProcess(folder, guarded.kafka.bootstrap, {"defaults": DEFAULTS})
    proxy.config["upstream"] |= {
        "tls": {"ca_file": str(guarded.authority.file), **guarded.proxy.files},
        "sasl": {"mechanism": "PLAIN", "username": "admin", "password": "a"},
    }
    proxy.config["listen"] |= {"user_name_is_principal": list(MECHANISMS)}
    proxy.config["listen"] |= {"tls": {**own.files, **listen.pop("tls", {})}, **listen}
    return proxy


def send(proxy: ProxyProcess, settings: dict[str, Any], *timestamps: int) -> list[str]:
    """Send records with these timestamps, each in its own batch, and return their outcomes."""
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


@pytest.fixture(scope="session")
def mutual_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kafka, Authority, Certificate]]:
    """Yield a broker that authenticates clients by certificates and only grants writes to the proxy's certificate."""
    folder = tmp_path_factory.mktemp("certificates")
    authority = Authority(folder)
    broker, proxy = authority.sign("broker"), authority.sign("proxy")
    settings = {
        **security_settings("SSL"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{proxy.subject};User:{broker.subject};User:ANONYMOUS".replace("\\", "\\\\"),
        **kafka_tls(broker, authority, "required"),
    }
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("mutual"), settings=settings)
    try:
        yield kafka.start(), authority, proxy
    finally:
        kafka.stop()


@pytest.fixture(scope="session")
def tls_proxy(guarded: GuardedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    """Yield a proxy with TLS to clients and to the guarded broker."""
    process = proxy_for(guarded, tmp_path_factory.mktemp("proxy"))
    try:
        yield process.start()
    finally:
        process.stop()
