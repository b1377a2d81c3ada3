"""If a broker's listener expects another protocol, the error names `security.protocol`."""

import pytest

from sluicegate.pipeline.kafka.cluster import KafkaCluster
from sluicegate.pipeline.kafka.connection import BrokerUnreachable
from sluicegate.pipeline.kafka.settings import client_settings
from tests.integration.secure_brokers import TOPIC, GuardedBroker


def connection_error(bootstrap: str, settings: dict[str, str]) -> str:
    """Return the message about an unreachable cluster."""
    host, port = bootstrap.split(",", maxsplit=1)[0].rsplit(":", 1)
    cluster = KafkaCluster([(host, int(port))], client_settings(settings), timeout_seconds=0)
    with pytest.raises(BrokerUnreachable) as found:
        cluster.partitions([TOPIC])
    cluster.close()
    return str(found.value)


@pytest.mark.parametrize("protocol", ["plaintext", "ssl"])
def test_suggests_sasl_ssl_for_a_listener_with_tls_and_login(guarded: GuardedBroker, protocol: str) -> None:
    """The listener answers plaintext with a TLS alert, and closes TLS connections without a login after the first
    request."""
    settings = {"security.protocol": protocol, "ssl.ca.location": str(guarded.authority.file)}

    report = connection_error(guarded.kafka.bootstrap, settings)

    assert f"this client uses security.protocol={protocol}." in report
    assert "sasl_ssl" in report.split("another protocol (")[1]


def test_reports_tls_to_a_plaintext_listener(kafka_bootstrap: str) -> None:
    assert "this client uses security.protocol=ssl." in connection_error(kafka_bootstrap, {"security.protocol": "ssl"})


def test_an_untrusted_certificate_is_not_reported_as_a_wrong_protocol(guarded: GuardedBroker) -> None:
    report = connection_error(guarded.kafka.bootstrap, {"security.protocol": "ssl"})

    assert "certificate verify failed" in report
    assert "security.protocol" not in report
