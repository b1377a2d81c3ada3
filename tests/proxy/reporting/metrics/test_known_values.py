"""A known value goes through every metric with a unit in its name, which would reveal milliseconds in `_seconds`.

Labels are measured too: whatever topics and clients exist, no label of any metric has more values than its bound.
"""

import asyncio
import json
import resource
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from prometheus_client.core import Metric
from structlog.testing import capture_logs

from sluicegate.config.loading import config_of
from sluicegate.proxy.admin.responses import all_metrics
from sluicegate.proxy.cluster.cluster_clock import ClockOffset
from sluicegate.proxy.reload.enforcement import Enforcement
from sluicegate.proxy.reporting.metrics.collection import metrics_of
from sluicegate.proxy.reporting.metrics.counters import Counters, RequestTimes, Snapshot
from sluicegate.proxy.reporting.metrics.families import FAMILIES
from sluicegate.proxy.reporting.metrics.family import TOPIC, Family
from sluicegate.proxy.reporting.metrics.topic_labels import MAX_TOPICS, owners_of
from sluicegate.proxy.reporting.metrics.violation_labels import MAX_CLIENTS, MAX_KINDS
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.server.broker_watch import ProbeResults
from sluicegate.proxy.server.clock_watch import ClockWatch
from sluicegate.proxy.server.housekeeping import Housekeeping
from sluicegate.proxy.server.server_state import ServerState
from sluicegate.proxy.session.in_flight import InFlightRequest
from sluicegate.proxy.session.pass_through import ClusterLogin
from sluicegate.proxy.session.request_clock import RequestClock
from sluicegate.proxy.status.status import Status
from tests.bounds.frames import sized_produce_request
from tests.broker.certificates import Authority
from tests.proxy.session.playbook import NOW, Outlet, Playbook, deliver_from_peer
from tests.proxy.session.quotas.test_metering import QuotaPlay
from tests.wire.batches import Rec, batch

HOUR = 3_600_000
LEAST = {"upstream": {"bootstrap": "127.0.0.1:9"}, "listen": {"bootstrap": "127.0.0.1:9"}}
AFTER = "message.timestamp.after.max.ms"
UNITS = ("_seconds", "_bytes", "_bytes_limit")
MOST = {TOPIC: MAX_TOPICS, "client_id": MAX_CLIENTS}
"""The maximum number of a label's values, without `other`."""

Values = dict[tuple[str, ...], float]
Known = Callable[[str, Path], Awaitable[tuple[float, float, float]]]
"""Returns a measured value, and its permitted minimum and maximum."""


def values_of(name: str, metrics: list[Metric]) -> Values:
    """Return the values of a metric by its labels, of a histogram its sums."""
    found = {}
    for metric in metrics:
        for sample in metric.samples:
            if sample.name in (name, f"{name}_total", f"{name}_sum"):
                found[tuple(sample.labels.values())] = sample.value
    return found


def counter_value(name: str, counters: Counters) -> float:
    return sum(values_of(name, list(metrics_of(Snapshot(counters, 0)))).values())


def state_of(play: Playbook) -> ServerState:
    return ServerState(config_of(LEAST), play.parts, AddressBook({}, lambda _: None), ProbeResults(), Status())


async def validated_bytes(name: str, _folder: Path) -> tuple[float, float, float]:
    play, data = Playbook(), batch([Rec(NOW, b"k", b"v" * 1000)])
    play.from_client(sized_produce_request(9, {b"t": [(0, data)]}))
    play.ends()
    return counter_value(name, play.parts.observer.counted()), len(data), len(data)


async def request_seconds(name: str, _folder: Path) -> tuple[float, float, float]:
    """A request is in the proxy for 1.5 s, and 1.5 s at its broker."""
    counters, now = Counters(), [1.5]
    clock, in_flight = RequestClock(lambda: now[0], RequestTimes(counters)), InFlightRequest(1)
    clock.sent(0, 0.0, in_flight)
    now[0] = 3.0
    clock.response_began(in_flight)
    return counter_value(name, counters), 1.5, 1.5


async def loop_delay(name: str, _folder: Path) -> tuple[float, float, float]:
    play, began = Playbook(), time.monotonic()
    state = state_of(play)
    keeper = Housekeeping(
        play.parts, Status(), 1.0, state.connection_stats, {}, [], Enforcement(Status(), lambda _: None)
    )
    (measure,) = (step for step in keeper.steps if step.__name__ == "_measure_delay")
    measuring = asyncio.create_task(measure())  # type: ignore[arg-type]
    await asyncio.sleep(0)
    time.sleep(0.3)  # noqa: ASYNC251  # the loop stands still
    await measuring
    elapsed = time.monotonic() - began
    return counter_value(name, play.parts.counters), 0.01, elapsed


async def buffered_bytes(name: str, _folder: Path) -> tuple[float, float, float]:
    play, size = Playbook(has_fast_path=False), 300_000
    whole = sized_produce_request(9, {b"t": [(0, batch([Rec(NOW, b"k", b"v" * size)]))]})
    play.from_client(whole[: size // 2])
    found = values_of(name, list(metrics_of(state_of(play).snapshot())))
    return sum(found.values()), size // 2, 2 * len(whole)


async def memory_budget_bytes(name: str, _folder: Path) -> tuple[float, float, float]:
    play = Playbook(SLUICEGATE__LIMITS__MAX_BUFFERED_BYTES="512MiB", SLUICEGATE__LIMITS__MAX_QUARANTINED_BYTES="1MiB")
    found = values_of(name, list(metrics_of(state_of(play).snapshot())))
    return sum(found.values()), 256 << 20, 600 << 20


async def throttled_seconds(name: str, _folder: Path) -> tuple[float, float, float]:
    """Send two requests immediately under a quota of one request per second."""
    play = QuotaPlay(False, {"name": "slow", "client_id": "*", "requests_per_second": 1})
    for _ in range(2):
        play.send(sized_produce_request(9, {b"orders": [(0, batch([Rec(NOW)]))]}))
    return counter_value(name, play.playbook.parts.observer.counted()), 0.9, 2.1


async def clock_offset(name: str, _folder: Path) -> tuple[float, float, float]:
    status = Status()
    watch = ClockWatch(config_of(LEAST).upstream, None, ClusterLogin(), 0, status, lambda: NOW)
    watch.learn(ClockOffset(1, 7_200_000, 1))
    snapshot = Snapshot(Counters(), 0, clock_offset_seconds=watch.offset_seconds)
    return sum(values_of(name, list(metrics_of(snapshot))).values()), -7200, -7200


async def certificate_expiry_seconds(name: str, folder: Path) -> tuple[float, float, float]:
    expires = datetime(2030, 1, 2, tzinfo=UTC)
    signed = Authority(folder).sign("proxy", expires=expires)
    tls = {"certificate_file": str(signed.chain), "key_file": str(signed.key)}
    config = config_of(LEAST | {"listen": {"bootstrap": "127.0.0.1:9", "tls": tls}})
    found = values_of(name, list(all_metrics(config, lambda: Snapshot(Counters(), 0))))
    return min(found.values()), expires.timestamp(), expires.timestamp()


async def processor_seconds(name: str, _folder: Path) -> tuple[float, float, float]:
    state, least = state_of(Playbook()), time.process_time()
    value = sum(values_of(name, list(metrics_of(state.snapshot()))).values())
    return value, least, time.process_time()


async def resident_memory_bytes(name: str, _folder: Path) -> tuple[float, float, float]:
    value = sum(values_of(name, list(metrics_of(state_of(Playbook()).snapshot()))).values())
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return value, most / 20, 1.1 * most


KNOWN: dict[str, Known] = {
    "sluicegate_validated_bytes": validated_bytes,
    "sluicegate_request_proxy_seconds": request_seconds,
    "sluicegate_request_upstream_seconds": request_seconds,
    "sluicegate_event_loop_delay_seconds": loop_delay,
    "sluicegate_buffered_bytes": buffered_bytes,
    "sluicegate_buffered_bytes_limit": memory_budget_bytes,
    "sluicegate_quota_throttle_seconds": throttled_seconds,
    "sluicegate_clock_offset_seconds": clock_offset,
    "sluicegate_certificate_expires_timestamp_seconds": certificate_expiry_seconds,
    "sluicegate_cpu_seconds": processor_seconds,
    "sluicegate_resident_memory_bytes": resident_memory_bytes,
}


@pytest.mark.parametrize("family", [each for each in FAMILIES if each.name.endswith(UNITS)], ids=lambda each: each.name)
async def test_metric_value_is_in_the_unit_of_its_name(family: Family, tmp_path: Path) -> None:
    assert family.name in KNOWN, f"{family.name} is new: add a value for it to KNOWN in this file"

    value, least, most = await KNOWN[family.name](family.name, tmp_path)

    assert least <= value <= most, f"{family.name} is {value}, expected {least} to {most}: check the unit"


def test_client_chosen_labels_have_bounded_number_of_values() -> None:
    """Each client has topics of its own, with good batches and bad ones.

    The first half of the clients has one address, and takes all labels. Each later client has an address of its own, so
    that its names replace earlier ones, whose counts have to move to `other`.
    """
    topics = [f"t-{i}" for i in range(2 * MAX_KINDS)]
    policy = {"match": "t-*", "owner": {"team": "a"}, "rehearse": {AFTER: [1]}, AFTER: HOUR}
    play = Playbook(SLUICEGATE__TOPICS=json.dumps([policy]))
    play.parts.observer.configure(topics)
    batches = [batch([Rec(NOW + ahead)]) for ahead in (0, 1000, 2 * HOUR)]
    clients = 2 * MAX_CLIENTS
    with capture_logs():
        for client in range(clients):
            play.client_address = f"10.0.{max(0, client - clients // 2)}.1:5"
            session, outlet = play.another_session()
            own = topics[client::clients]
            for data in batches:
                request = sized_produce_request(
                    9, {topic.encode(): [(0, data)] for topic in own}, client_id=b"client-%d" % client
                )
                deliver_from_peer(session.client, outlet, request)
                play.loop.run_steps()
                if not session.broker.is_open:
                    session.broker.connection_made(Outlet(session.broker))
                    play.loop.run_steps()
            session.close_now()
            play.loop.run_steps()

    counters, rulebook = play.parts.observer.counted(), play.parts.rules.rulebook
    snapshot = Snapshot(counters, 0, topic_owners=owners_of(counters, rulebook))
    scraped = {metric.name: metric.samples for metric in metrics_of(snapshot)}
    for family in FAMILIES:
        samples = scraped.get(family.name, ())
        if {TOPIC, "client_id"} <= {*family.labels}:
            assert len(samples) <= MAX_KINDS + 1, f"{family.name} has {len(samples)} series: use ViolationLabels"
            continue
        for label in family.labels:
            count, most = len({each.labels[label] for each in samples if label in each.labels}), _most(family, label)
            words = f"{family.name} has {count} values of {label}, and {most} are allowed: fold it as TopicLabels does"
            assert count <= most, words
    # The test would pass for a topic metric that this traffic does not reach; test_families.py measures batch counters.
    of_topics = [family.name for family in FAMILIES if TOPIC in family.labels and family.counted is None]
    unreached = [name for name in of_topics if len({each.labels[TOPIC] for each in scraped[name]}) < MAX_TOPICS]
    assert not unreached, f"the traffic of this test does not reach {unreached}: extend it"


def _most(family: Family, label: str) -> int:
    """Owners are shown of topics with events and of topics with traffic, which have slots of their own."""
    kinds_of_slots = 2 if family.name == "sluicegate_topic_owner_info" else 1
    return kinds_of_slots * MOST.get(label, MAX_CLIENTS) + 1
