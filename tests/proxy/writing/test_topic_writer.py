"""librdkafka accepts the settings of every configuration, and its last error is the reason for a lost record."""

from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.proxy.network.tls.contexts import MemoryFiles
from sluicegate.proxy.writing.topic_writer import DeliveryFailure, TopicWriter, connection_settings
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.config.reading import load_text


def test_delivery_timeout_has_the_last_broker_error_as_reason() -> None:
    port = free_ports(1)
    text = f"upstream: {{bootstrap: ['127.0.0.1:{port}']}}\nlisten: {{bootstrap: '127.0.0.1:2'}}\n"
    writer = TopicWriter(load_text(text).config.upstream, {"message.timeout.ms": 1500})
    told: list[DeliveryFailure | None] = []

    def served() -> bool:
        writer.serve(0.1)
        return bool(told)

    writer.write("dead", b"k", b"v", [("a", b"1")], told.append)
    eventually(served, 30)

    (why,) = told
    assert why is not None and not why.is_lasting
    assert "Message timed out" in why.reason
    assert "Connection refused" in why.reason, "not that all brokers are down"


LISTEN = "listen: {bootstrap: '127.0.0.1:2'}\n"


def settings_of(upstream: str) -> dict[str, Any]:
    text = f"upstream: {{bootstrap: ['h:1', '[::1]:2']{upstream}}}\n" + LISTEN
    with MemoryFiles() as copies:
        settings = connection_settings(load_text(text).config.upstream, copies)
        confluent_kafka.Producer({**settings, "bootstrap.servers": "127.0.0.1:9"})
    return settings


def test_a_plaintext_upstream_gives_plaintext_settings() -> None:
    settings = settings_of("")

    assert settings["bootstrap.servers"] == "h:1,[::1]:2"
    assert settings["security.protocol"] == "PLAINTEXT"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("tls", "protocol"), [("", "SASL_PLAINTEXT"), (", tls: {}", "SASL_SSL")])
def test_each_sasl_mechanism_maps_to_its_librdkafka_settings(
    mechanism: str, tls: str, protocol: str, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")
    sasl = f"{tls}, sasl: {{mechanism: {mechanism}, username: u, password_file: {file}}}"

    settings = settings_of(sasl)

    assert settings["security.protocol"] == protocol
    assert settings["sasl.mechanism"] == mechanism
    assert (settings["sasl.username"], settings["sasl.password"]) == ("u", "secret")
    file.unlink()
    assert settings_of(sasl)["sasl.password"] == "secret"
    file.write_text("")
    with pytest.raises(PasswordUnreadable):
        settings_of(sasl)


def test_tls_settings_have_copied_files_and_host_name_verification(tmp_path: Path) -> None:
    for name in ("ca", "c", "k"):
        (tmp_path / name).write_text(f"what {name} holds")
    files = f"ca_file: {tmp_path}/ca, certificate_file: {tmp_path}/c, key_file: {tmp_path}/k"
    text = f"upstream: {{bootstrap: ['h:1'], tls: {{{files}, key_password: p, verify_hostname: false}}}}\n" + LISTEN
    with MemoryFiles() as copies:
        settings = connection_settings(load_text(text).config.upstream, copies)
        held = {key: Path(str(name)).read_text() for key, name in settings.items() if key.endswith(".location")}

    assert held == {
        "ssl.ca.location": "what ca holds",
        "ssl.certificate.location": "what c holds",
        "ssl.key.location": "what k holds",
    }
    assert settings["ssl.endpoint.identification.algorithm"] == "none"
    assert settings["ssl.key.password"] == "p"
    assert settings_of(", tls: {}")["ssl.endpoint.identification.algorithm"] == "https"
