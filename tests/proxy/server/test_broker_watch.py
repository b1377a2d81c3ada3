"""The proxy probes brokers, reports those that clients cannot use, and forgets removed ones."""

import socket

from structlog.testing import capture_logs

from sluicegate.config.loading import read_section
from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import ApiKey
from sluicegate.proxy.reporting.logs.session_log import SessionLog
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.server.broker_watch import BrokerWatch, ProbeResults
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from tests.proxy.scripted_broker import SILENCE, ScriptedBroker

DAY = 24 * 3600.0
MARK = 7


def test_probes_all_brokers_of_small_clusters_and_rotates_through_large_ones() -> None:
    probes = ProbeResults()
    small, large = list(range(20)), list(range(50))

    assert probes.due(small) == small
    assert probes.due([]) == []
    rounds = [probes.due(large) for _ in range(3)]
    assert [len(each) for each in rounds] == [20, 20, 20]
    assert {node_id for each in rounds for node_id in each} == set(large)


def test_broker_is_unreachable_until_it_responds() -> None:
    probes = ProbeResults()
    probes.probed(1, None, 100)
    probes.probed(2, "Connection refused", 100)

    assert probes.unreachable(100) == {2: "Connection refused"}
    assert [probes.state_of(node_id, 100) for node_id in (1, 2, 3)] == ["reachable", "unreachable", "not checked"]
    probes.probed(2, None, 105)
    assert probes.unreachable(105) == {}


def test_unlisted_broker_is_unreachable_even_if_it_responds() -> None:
    probes = ProbeResults()
    probes.listed(frozenset({1, 2}))
    for node_id in (1, 2, 3):
        probes.probed(node_id, None, 100)
    probes.listed(frozenset({1}))

    assert probes.unreachable(100) == {2: "it responds, but the cluster does not list it"}
    assert probes.state_of(2, 100) == "unreachable"
    probes.listed(None)
    assert probes.unreachable(100) == {}


def test_forgets_removed_broker_after_a_day_but_keeps_listed_unreachable_broker() -> None:
    probes = ProbeResults()
    probes.listed(frozenset({1, 2}))
    for node_id in (1, 2):
        probes.probed(node_id, None, 0)
    probes.listed(frozenset({2}))
    for node_id in (1, 2):
        probes.probed(node_id, "Connection refused", 5)

    assert set(probes.unreachable(DAY - 1)) == {1, 2}
    assert set(probes.unreachable(DAY + 6)) == {2}


async def test_unreachable_broker_condition_names_id_and_address_and_ends_on_response() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = HostPort("127.0.0.1", closed.getsockname()[1])
    async with ScriptedBroker({}) as good, ScriptedBroker({ApiKey.API_VERSIONS: lambda _v, _b: SILENCE}) as hung:
        book = AddressBook({1: good.address, 2: dead, 3: hung.address}, lambda _: None)
        upstream = read_section(Upstream, {"bootstrap": str(good.address), "connect_timeout_seconds": 1})
        status = Status()
        status.end(Condition.STARTING)
        log = SessionLog()
        watch = BrokerWatch(upstream, None, book, ProbeResults(), MARK, status, log)

        await watch.probe()
        refused, silent = status.active()
        assert (refused.subject, silent.subject) == ("broker 2", "broker 3")
        assert refused.detail.startswith(f"broker 2 at {dead}: ")
        assert silent.detail.startswith(f"broker 3 at {hung.address}: no response within 1")
        assert status.not_ready() is None
        for broker in ("broker 1", "broker 2", "broker 2"):
            log.upstream_unreachable(broker, "Connection refused")
        async with ScriptedBroker({}) as again:
            book.advertise(2, again.address.host, again.address.port)
            book.advertise(3, again.address.host, again.address.port)
            with capture_logs() as lines:
                await watch.probe()
        assert status.active() == []
        events = [line["event"] for line in lines]
        assert events == ["broker unreachable", "condition ended", "condition ended"], "the end comes last"
        assert lines[0]["broker"] == "broker 2"
