"""The section `upstream` in librdkafka's words: each configuration is one that librdkafka takes."""

from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from sluicegate.config.password import PasswordUnreadable
from sluicegate.proxy.writing.producer_settings import connection_settings
from tests.config.reading import loaded

LISTEN = "listen: {bootstrap: '127.0.0.1:2'}\n"


def settings_of(upstream: str) -> dict[str, Any]:
    text = f"upstream: {{bootstrap: ['h:1', '[::1]:2']{upstream}}}\n" + LISTEN
    settings = connection_settings(loaded(text).config.upstream)
    confluent_kafka.Producer({**settings, "bootstrap.servers": "127.0.0.1:9"})
    return settings


def test_plain() -> None:
    settings = settings_of("")

    assert settings["bootstrap.servers"] == "h:1,[::1]:2"
    assert settings["security.protocol"] == "PLAINTEXT"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("tls", "protocol"), [("", "SASL_PLAINTEXT"), (", tls: {}", "SASL_SSL")])
def test_logins(mechanism: str, tls: str, protocol: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")
    sasl = f"{tls}, sasl: {{mechanism: {mechanism}, username: u, password_file: {file}}}"

    settings = settings_of(sasl)

    assert settings["security.protocol"] == protocol
    assert settings["sasl.mechanism"] == mechanism
    assert (settings["sasl.username"], settings["sasl.password"]) == ("u", "secret")
    file.unlink()
    with pytest.raises(PasswordUnreadable):
        settings_of(sasl)


def test_tls_names_its_files_and_whether_a_name_is_looked_at() -> None:
    settings = connection_settings(
        loaded(
            "upstream: {bootstrap: ['h:1'], tls: {ca_file: ca, certificate_file: c, key_file: k, key_password: p, "
            "verify_hostname: false}}\n" + LISTEN
        ).config.upstream
    )

    assert {key: value for key, value in settings.items() if key.startswith("ssl.")} == {
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.ca.location": "ca",
        "ssl.certificate.location": "c",
        "ssl.key.location": "k",
        "ssl.key.password": "p",
    }
    assert settings_of(", tls: {}")["ssl.endpoint.identification.algorithm"] == "https"
