"""After the first Metadata response without a broker, no view shows the proxy as serving."""

import asyncio
import threading
from datetime import datetime

import pytest

from sluicegate.config.loading import config_of, read_section
from sluicegate.config.model import Config
from sluicegate.config.upstream import Upstream
from sluicegate.protocol.api import ApiKey
from sluicegate.proxy.cluster.discovery import _one_that_lists_brokers, discover_cluster
from sluicegate.proxy.network.tls.certificates import OwnExpiries
from sluicegate.proxy.server import cluster_watch as module
from sluicegate.proxy.server.server import Server
from sluicegate.proxy.status.condition import Condition, ServingState
from sluicegate.proxy.status.status import ActiveCondition, of_workers, state_of
from tests.broker.eventually import eventually
from tests.proxy.scripted_broker import SILENCE, ScriptedBroker, metadata_of_brokers


def active_conditions(server: Server) -> list[Condition]:
    return [each.condition for each in server.status.active()]


async def test_a_cluster_without_a_broker_is_reported_before_certificates_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Certificate files may be on a file system that hangs."""
    reading, may_end = threading.Event(), threading.Event()

    def read_slowly(_config: Config, _now: datetime) -> OwnExpiries:
        reading.set()
        may_end.wait(60)
        return OwnExpiries(None, {})

    monkeypatch.setattr(module, "own_expiries", read_slowly)
    async with ScriptedBroker({ApiKey.METADATA: metadata_of_brokers()}) as broker:
        server = Server(
            config_of(
                {
                    "upstream": {"bootstrap": str(broker.address)},
                    "listen": {"bootstrap": "127.0.0.1:0", "broker_port_base": 20000},
                    "admin": {"listen": None},
                }
            )
        )
        starting = asyncio.create_task(server.start())
        try:
            await asyncio.to_thread(eventually, reading.is_set)
            assert active_conditions(server) == [Condition.STARTING, Condition.NO_BROKER_LISTED]
        finally:
            may_end.set()
            await starting
            assert active_conditions(server) == [Condition.NO_BROKER_LISTED]
            await server.drain()


async def test_discovery_does_not_wait_long_for_unresponsive_addresses() -> None:
    async with (
        ScriptedBroker({ApiKey.METADATA: metadata_of_brokers()}) as listing_none,
        ScriptedBroker({ApiKey.METADATA: lambda _version, _body: SILENCE}) as silent,
        asyncio.timeout(60),
    ):
        upstream = {"bootstrap": [str(listing_none.address), str(silent.address)], "connect_timeout_seconds": 600}

        found = await discover_cluster(read_section(Upstream, upstream), None, 1)

        assert (found.answered_by, found.brokers) == (listing_none.address, {})
        assert silent.asked[ApiKey.METADATA] == 1


async def test_discovery_uses_another_address_that_lists_brokers() -> None:
    async with (
        ScriptedBroker({ApiKey.METADATA: metadata_of_brokers()}) as listing_none,
        ScriptedBroker({ApiKey.METADATA: lambda _version, _body: SILENCE}) as silent,
        ScriptedBroker({ApiKey.METADATA: metadata_of_brokers((1, "127.0.0.1", 9))}) as listing_one,
    ):
        addresses = [str(each.address) for each in (listing_none, silent, listing_one)]
        upstream = read_section(Upstream, {"bootstrap": addresses, "connect_timeout_seconds": 600})
        found = await _one_that_lists_brokers(upstream, None, 1, listing_none.address)

    assert found is not None
    assert found[0] == listing_one.address


def test_no_broker_condition_starts_when_one_worker_sees_no_broker() -> None:
    """A worker that has not checked the cluster again does not serve clients either."""
    kind = Condition.NO_BROKER_LISTED
    seen = ActiveCondition(kind, kind.type.state, "kafka", "kafka responds, but lists no broker", 1)

    (shown,) = active = of_workers([(1, [seen]), (2, [])])

    assert state_of(active) is ServingState.NOT_SERVING
    assert shown == seen
