"""The proxy uses TLS on both sides, with good and bad certificates, and each side reports the expected errors."""

import os
import re
import shutil
import socket
import ssl
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
)

from tests.broker.certificates import Authority, Certificate
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.condition_views import wait_until_begun, wait_until_condition_ended
from tests.integration.secure_brokers import TOPIC, GuardedBroker, client_login, now_ms, proxy_for, send
from tests.integration.topics import DEFAULTS, UNVALIDATED
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import CLOSED, PRODUCE, RawClient, produce_body, topic_data
from tests.wire.tls_client import TlsClient

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def proxy(tls_proxy: ProxyProcess) -> ProxyProcess:
    return tls_proxy


def test_a_client_that_does_not_trust_the_ca_is_reported(proxy: ProxyProcess, tmp_path: Path) -> None:
    errors: list[KafkaError] = []
    stranger = Authority(tmp_path, "stranger")
    settings = client_login("alice", "secret") | {"ssl.ca.location": str(stranger.file), "error_cb": errors.append}
    client = AdminClient({"bootstrap.servers": proxy.bootstrap} | settings)

    with pytest.raises(KafkaException):
        client.list_topics(timeout=3)
    eventually(lambda: client.poll(0.1) or errors)

    assert "certificate verify failed" in str(errors[0])
    eventually(lambda: "the peer does not trust the CA of our certificate" in proxy.log())


def test_a_plaintext_client_on_a_tls_port_is_logged(proxy: ProxyProcess) -> None:
    with RawClient(proxy.bootstrap) as client:
        client.send(18, 0, b"")
        assert client.receive() != b""

    eventually(lambda: "the peer does not use TLS" in proxy.log())


@pytest.mark.long
def test_only_clients_with_an_allowed_certificate_are_accepted(guarded: GuardedBroker, tmp_path: Path) -> None:
    client, stranger = guarded.authority.sign("client"), guarded.authority.sign("stranger", "stranger.example.com")
    tls = {"client_auth": "required", "client_ca_file": str(guarded.authority.file), "allowed_names": ["clien?"]}
    proxy = proxy_for(guarded, tmp_path, tls=tls)
    proxy.config["upstream"]["topic_settings"] = False
    trusting = {"ssl.ca.location": str(guarded.authority.file), "security.protocol": "SSL"}
    own, strange = (
        {"ssl.certificate.location": str(one.chain), "ssl.key.location": str(one.key)} for one in (client, stranger)
    )
    try:
        proxy.start()
        for nobody in ({}, strange):
            turned_away = AdminClient({"bootstrap.servers": proxy.bootstrap} | trusting | nobody)
            with pytest.raises(KafkaException):
                turned_away.list_topics(timeout=3)
            del turned_away  # otherwise this client would reconnect continuously and delay the accepted client
        bad = send(proxy, client_login("alice", "secret") | own | {"ssl.ca.location": trusting["ssl.ca.location"]}, 1)
    finally:
        proxy.stop()

    assert bad == ["INVALID_TIMESTAMP"]
    proxy.wait_for_line("the client sent no certificate, which client_auth requires")
    proxy.wait_for_line(
        "the certificate has the names stranger, stranger.example.com, and none is in listen.tls.allowed_names"
    )


@pytest.mark.long
def test_the_broker_gets_the_proxys_certificate_and_the_event_names_the_clients(
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
        for future in admin.create_topics([NewTopic(TOPIC, 1, 1, config=UNVALIDATED)]).values():
            future.result(30)
        assert send(proxy, settings, now_ms(), now_ms() * 1000) == ["ok", "INVALID_TIMESTAMP"]
        eventually(lambda: proxy.violations_of(TOPIC), what="the event")
        straight = AdminClient(settings | {"bootstrap.servers": kafka.bootstrap})
        assert TOPIC not in straight.list_topics(timeout=10).topics  # the client's own certificate has no permissions
    finally:
        proxy.stop()

    assert proxy.violations_of(TOPIC)[0]["principal"] == f"User:{client.subject}"


def seconds_left(proxy: ProxyProcess) -> float:
    (line,) = [line for line in proxy.get("/metrics")[1].splitlines() if 'key="listen.tls.certificate_file"' in line]
    return float(line.rpartition(" ")[2]) - time.time()


@pytest.mark.long
def test_certificates_are_read_again_when_the_file_changes(
    guarded: GuardedBroker, tmp_path: Path, web_ui: "Page | None"
) -> None:
    proxy = proxy_for(guarded, tmp_path)
    files = {name: tmp_path / name for name in ("certificate_file", "key_file")}
    expired = guarded.authority.sign("expired", expires=datetime.now(UTC) - timedelta(days=1))
    renewed = guarded.authority.sign("renewed")
    replace_files(expired, files)
    proxy.config["listen"]["tls"] = {name: str(file) for name, file in files.items()}
    trusting = client_login("alice", "secret") | {"ssl.ca.location": str(guarded.authority.file)}
    try:
        proxy.start(ready=False)
        assert "expired on " in wait_until_begun(proxy, "certificate_expired", web_ui)
        assert proxy.get("/readyz")[0] == 503
        assert seconds_left(proxy) < 0
        errors: list[KafkaError] = []
        client = AdminClient({"bootstrap.servers": proxy.bootstrap, "error_cb": errors.append} | trusting)
        with pytest.raises(KafkaException):
            client.list_topics(timeout=3)
        eventually(lambda: client.poll(0.1) or errors)
        assert "certificate verify failed" in str(errors[0])
        eventually(lambda: "the peer reports that our certificate has expired" in proxy.log())

        replace_files(renewed, files)
        proxy.wait_for_line("certificates reloaded")
        assert send(proxy, trusting, now_ms()) == ["ok"]
        eventually(lambda: proxy.get("/readyz")[0] == 200, what="readiness with the new certificate")
        assert seconds_left(proxy) > 0

        files["key_file"].write_text("half a key")
        proxy.wait_for_line("changed certificates rejected; previous certificates stay in use")
        assert send(proxy, trusting, now_ms()) == ["ok"]
    finally:
        proxy.stop()


def replace_files(certificate: Certificate, files: dict[str, Path]) -> None:
    """Replace the files, as a renewal does."""
    for name, source in certificate.files.items():
        fresh = files[name].with_suffix(".new")
        shutil.copy(source, fresh)
        fresh.replace(files[name])


def test_a_broker_with_an_unknown_ca_is_not_used(guarded: GuardedBroker, tmp_path: Path) -> None:
    proxy = proxy_for(guarded, tmp_path)
    proxy.config["upstream"]["tls"]["ca_file"] = str(Authority(tmp_path, "stranger").file)
    try:
        proxy.start(ready=False)
        eventually(lambda: "the certificate is not accepted: unable to get local issuer" in proxy.get("/readyz")[1])
    finally:
        proxy.stop()


def test_a_missing_certificate_for_the_broker_is_reported(
    mutual_broker: tuple[Kafka, Authority, Certificate], tmp_path: Path
) -> None:
    kafka, authority, _ = mutual_broker
    proxy = ProxyProcess(tmp_path, kafka.bootstrap)
    proxy.config["upstream"]["tls"] = {"ca_file": str(authority.file)}
    try:
        proxy.start(ready=False)
        eventually(lambda: "or requires one and received none" in proxy.get("/readyz")[1])
    finally:
        proxy.stop()


def test_acks_0_over_tls_arrives_before_the_connection_ends(
    mutual_broker: tuple[Kafka, Authority, Certificate], tmp_path: Path
) -> None:
    proxy = proxy_to(mutual_broker, tmp_path, "acks-0")
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
            eventually(lambda: len(client.log_of("acks-0", 0)) == 21 * len(good), what="all batches")
        eventually(lambda: proxy.metric("sluicegate_open_connections") == 0, what="no connection left")
    finally:
        proxy.stop()


def test_acks_0_requests_of_a_tls_client_that_closes_at_once_are_stored(
    mutual_broker: tuple[Kafka, Authority, Certificate], tmp_path: Path
) -> None:
    _, authority, certificate = mutual_broker
    proxy = proxy_to(mutual_broker, tmp_path, "ends-at-once")
    proxy.config["listen"]["tls"] = certificate.files
    context = ssl.create_default_context(cafile=str(authority.file))
    good = batch([Rec(now_ms(), value=b"v" * 20_000)])
    try:
        proxy.start()
        with TlsClient(f"127.0.0.1:{proxy.broker_port(1)}", context) as client:
            eventually(lambda: client.fetch_error("ends-at-once", 0) == 0, what="the partition's leader")
        with TlsClient(f"127.0.0.1:{proxy.broker_port(1)}", context) as client:
            for _ in range(50):  # more than the proxy reads before it is connected to the broker
                client.send(PRODUCE, 9, produce_body(9, [topic_data("ends-at-once", (0, good))], acks=0))
            client.socket.shutdown(socket.SHUT_WR)
            assert client.receive() == CLOSED

        with TlsClient(f"127.0.0.1:{proxy.broker_port(1)}", context) as client:
            eventually(lambda: len(client.log_of("ends-at-once", 0)) == 50 * len(good), what="all batches")
    finally:
        proxy.stop()


def proxy_to(broker: tuple[Kafka, Authority, Certificate], folder: Path, topic: str) -> ProxyProcess:
    """Return a proxy with a certificate that the broker accepts, and create the topic."""
    kafka, authority, certificate = broker
    trusting = {"security.protocol": "SSL", "ssl.ca.location": str(authority.file)}
    own = {"ssl.certificate.location": str(certificate.chain), "ssl.key.location": str(certificate.key)}
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap, **trusting, **own})
    for future in admin.create_topics([NewTopic(topic, 1, 1, config=UNVALIDATED)]).values():
        future.result(30)
    proxy = ProxyProcess(folder, kafka.bootstrap, {"defaults": DEFAULTS})
    proxy.config["upstream"]["tls"] = {"ca_file": str(authority.file), **certificate.files}
    return proxy


def test_unusable_certificate_files_are_named_at_the_start(tmp_path: Path, guarded: GuardedBroker) -> None:
    proxy = proxy_for(guarded, tmp_path)
    proxy.config["listen"]["tls"]["key_file"] = str(guarded.broker.key)

    with pytest.raises(AssertionError, match="ended"):
        proxy.start()

    last = proxy.log().strip().splitlines()[-1]
    assert re.match(r".+\.yaml:\d+: listen\.tls\.key_file: ", last)
    assert str(guarded.broker.key) in last
    assert last.endswith("the key does not match the first certificate")
    assert os.path.sep in last


@pytest.mark.long
def test_certificates_that_expire_soon_need_attention_until_they_are_renewed(
    mutual_broker: tuple[Kafka, Authority, Certificate], tmp_path: Path, web_ui: "Page | None"
) -> None:
    """One certificate is for clients and one for the broker. The metric and the alert have both."""
    kafka, authority, _ = mutual_broker
    proxy = ProxyProcess(tmp_path, kafka.bootstrap, {"defaults": DEFAULTS})
    given: dict[str, dict[str, str]] = {}
    for section, days in (("listen", 5), ("upstream", 10)):
        soon = authority.sign(f"{section}-soon", expires=datetime.now(UTC) + timedelta(days=days))
        given[section] = soon.files
    proxy.config["listen"]["tls"] = given["listen"]
    proxy.config["upstream"]["tls"] = {"ca_file": str(authority.file), **given["upstream"]}
    condition = "certificate_expires_soon"
    try:
        proxy.start()
        wait_until_begun(proxy, condition, web_ui)
        status, text = proxy.get("/readyz")
        lines = [line for line in text.splitlines() if line.startswith(condition)]
        assert (status, text.splitlines()[0], len(lines)) == (200, "needs attention", 2)
        for section in given:
            subject = f"{section}.tls.certificate_file"
            assert any(f"{subject}: {given[section]['certificate_file']} expires on 20" in line for line in lines)
            assert (
                f'sluicegate_condition{{condition="{condition}",subject="{subject}"}} 1.0' in proxy.get("/metrics")[1]
            )

        for section, files in given.items():
            renewed = authority.sign(f"{section}-renewed")
            for key, file in renewed.files.items():
                shutil.copy(file, files[key])
        wait_until_condition_ended(proxy, condition)
    finally:
        proxy.stop()
