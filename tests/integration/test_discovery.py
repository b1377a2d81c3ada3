"""Discovery reports the logins of real clusters."""

from typing import Any

from sluicegate.config.loading import read_section
from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import parse_host_port
from sluicegate.proxy.cluster.discovery import DiscoveryResult, discover_cluster
from sluicegate.proxy.network.tls.contexts import context_for_brokers
from tests.integration.secure_brokers import GuardedBroker


async def discover(bootstrap: str, **more: Any) -> DiscoveryResult:
    upstream = read_section(Upstream, {"bootstrap": [bootstrap], **more})
    tls = context_for_brokers(upstream.tls) if upstream.tls is not None else None
    return await discover_cluster(upstream, tls, 7)


def sasl_settings(password: str, mechanism: str = "PLAIN") -> dict[str, str]:
    return {"mechanism": mechanism, "username": "admin", "password": password}


async def test_discovery_reports_that_a_cluster_requires_no_login(kafka_bootstrap: str) -> None:
    found = await discover(kafka_bootstrap)

    assert found.needs_login is False
    assert found.answered_by == parse_host_port(kafka_bootstrap)
    assert found.brokers


async def test_a_login_to_a_broker_without_logins_is_reported_as_rejected(kafka_bootstrap: str) -> None:
    found = await discover(kafka_bootstrap, sasl=sasl_settings("a"))

    assert (found.answered_by, found.needs_login) == (parse_host_port(kafka_bootstrap), None)
    assert "is this the plaintext listener?" in str(found.login_rejected)


async def test_discovery_reports_missing_and_rejected_logins(guarded: GuardedBroker) -> None:
    tls = {"ca_file": str(guarded.authority.file), **guarded.proxy.files}

    without = await discover(guarded.kafka.bootstrap, tls=tls)
    with_one = await discover(guarded.kafka.bootstrap, tls=tls, sasl=sasl_settings("a"))
    rejected = await discover(guarded.kafka.bootstrap, tls=tls, sasl=sasl_settings("wrong"))

    assert (without.needs_login, without.brokers) == (True, None)
    assert without.answered_by is not None
    assert with_one.needs_login is True
    assert with_one.brokers
    assert (rejected.answered_by, rejected.needs_login) == (without.answered_by, True)
    assert (rejected.reason, rejected.brokers) == (None, None)
    assert "upstream.sasl is rejected" in str(rejected.login_rejected)
