"""With `listen.legacy: convert`, old producers get Kafka 3.9's responses in front of 4.4, and the logs are equal.

Each set goes to a broker of 3.9.1, and through the proxy to a broker of 4.4.0. The test compares the responses in the
client's version, and all batches after decompression: every field of the header except the CRC, the size and the leader
epoch, and every byte of the records.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.record_batch import HEADER_BYTES, RecordBatch, next_batch_end
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.conformance.legacy_cases import LEGACY_TOPICS, LegacyCase, random_sets, stored, unusual
from tests.conformance.pair import Request, Side
from tests.oracle.kafka_java import KAFKA_NEWEST, KAFKA_OLD
from tests.wire.raw_client import CLOSED, RawClient

pytestmark = pytest.mark.long
_MOST_PLAIN = 1 << 24
_RANDOM_SETS, _THOROUGH_SETS = 60, 600


class BothPaths:
    """A broker of 3.9, and the proxy in front of a newer one, whose stored batches are read from the broker."""

    def __init__(self, old: Kafka, new: Kafka, proxy: ProxyProcess) -> None:
        names = {kind: f"legacy-{kind}" for kind in LEGACY_TOPICS}
        self.old = Side(old.bootstrap, names)
        self.proxied = Side(f"127.0.0.1:{proxy.broker_port(1)}", names)
        self._new = Side(new.bootstrap, names)
        self._seen = dict.fromkeys(LEGACY_TOPICS, (0, 0))

    def close(self) -> None:
        for side in (self.old, self.proxied, self._new):
            side.close()

    def difference(self, case: LegacyCase) -> str | None:
        """Send a set on both paths. Return what differs; None if nothing does."""
        request = Request(case.version, [(case.kind, [(0, case.records)])], case.acks)
        expected, found = (_comparable(side.ask(request)) for side in (self.old, self.proxied))
        if case.acks == 0:
            self._await_log(case)
        in_old, in_new = self._new_batches(case.kind)
        if expected == found and in_old == in_new:
            return None
        return f"{case}\n  3.9   {expected}\n  proxy {found}\n  3.9   {in_old}\n  proxy {in_new}"

    def _await_log(self, case: LegacyCase) -> None:
        """Wait for a set with acks=0, to which there is no response."""
        with RawClient(self.old.address) as old:
            logs = len(_batches(old.log_of(self.old.names[case.kind], 0), False))
        if logs > self._seen[case.kind][0]:
            missing = self._seen[case.kind][1]
            eventually(lambda: len(self._log_in(self._new, case.kind)) > missing, what="a set with acks=0")

    def _new_batches(self, kind: str) -> tuple[Sequence[Any], Sequence[Any]]:
        logs = [self._log_in(side, kind) for side in (self.old, self._new)]
        added = tuple(
            [(b[0] - log[at][0], *b[1:]) for b in log[at:]] for log, at in zip(logs, self._seen[kind], strict=True)
        )
        self._seen[kind] = (len(logs[0]), len(logs[1]))
        return added[0], added[1]

    def _log_in(self, side: Side, kind: str) -> list[tuple[Any, ...]]:
        return _batches(side.log_of(kind, 0), kind == "append-time")


def _batches(log: bytes, has_append_time: bool) -> list[tuple[Any, ...]]:
    """Return the comparable fields of all batches in a log, with the plain payload."""
    found, at, view, decompressor = [], 0, memoryview(log), Decompressor()
    while (end := next_batch_end(view, at)) is not None:
        one = RecordBatch(view, at, end)
        payload = view[at + HEADER_BYTES : end]
        if one.codec_id:
            payload = decompressor.decompress(Codec(one.codec_id), payload, _MOST_PLAIN).data
        latest = "now" if has_append_time and one.max_timestamp > 0 else one.max_timestamp
        numbers = (one.base_offset, one.magic, one.attributes, one.last_offset_delta, one.base_timestamp, latest)
        producer = (one.producer_id, one.producer_epoch, one.base_sequence)
        found.append((*numbers, *producer, one.record_count, bytes(payload)))
        at = end
    return found


def _comparable(answer: Any) -> Any:
    """Return a response without its offsets and append times, which differ after one difference, or in time."""
    for topic in answer["responses"] if isinstance(answer, dict) else ():
        for entry in topic["partition_responses"]:
            entry["base_offset"] = min(entry["base_offset"], 0)
            if entry.get("log_append_time_ms", -1) > 0:
                entry["log_append_time_ms"] = "now"
    return answer


def _brokers(folder: Path) -> Iterator[tuple[Kafka, Kafka]]:
    old, new = Kafka(KAFKA_OLD, folder / "old"), Kafka(KAFKA_NEWEST, folder / "new")
    try:
        for kafka in (old, new):
            admin = AdminClient({"bootstrap.servers": kafka.start().bootstrap})
            kept = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}
            topics = [NewTopic(f"legacy-{kind}", 1, 1, config=kept | own) for kind, own in LEGACY_TOPICS.items()]
            for future in admin.create_topics(topics).values():
                future.result(30)
        yield old, new
    finally:
        old.stop()
        new.stop()


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kafka, Kafka]]:
    yield from _brokers(tmp_path_factory.mktemp("legacy"))


@pytest.fixture(scope="module")
def paths(brokers: tuple[Kafka, Kafka], tmp_path_factory: pytest.TempPathFactory) -> Iterator[BothPaths]:
    old, new = brokers
    proxy = ProxyProcess(tmp_path_factory.mktemp("converting"), new.bootstrap)
    proxy.config["listen"]["legacy"] = "convert"
    proxy.start()
    found = BothPaths(old, new, proxy)
    try:
        for kind in LEGACY_TOPICS:
            for side in (found.old, found.proxied):
                eventually(
                    lambda side=side, kind=kind: side.connected().fetch_error(side.names[kind], 0) == 0,
                    what=f"a leader for {kind}",
                )
        yield found
        assert "internal error" not in proxy.log()
    finally:
        found.close()
        proxy.stop()


def test_stored_batches_equal_those_of_kafka_3_9(paths: BothPaths) -> None:
    cases = list(stored(time.time_ns() // 1_000_000))
    assert len(cases) >= 60

    differences = [difference for case in cases if (difference := paths.difference(case)) is not None]

    assert not differences, "\n".join(differences[:20])


def test_unusual_message_sets_are_stored_or_rejected_as_by_kafka_3_9(paths: BothPaths, is_thorough: bool) -> None:
    cases = unusual(time.time_ns() // 1_000_000, is_thorough)

    differences = [difference for case in cases if (difference := paths.difference(case)) is not None]

    assert not differences, "\n".join(differences[:20])


def test_random_message_sets_are_stored_or_rejected_as_by_kafka_3_9(paths: BothPaths, is_thorough: bool) -> None:
    now = time.time_ns() // 1_000_000
    cases = random_sets(now, _THOROUGH_SETS if is_thorough else _RANDOM_SETS, seed=now if is_thorough else 1)

    differences = [difference for case in cases if (difference := paths.difference(case)) is not None]

    assert not differences, "\n".join(differences[:20])


def test_without_legacy_conversion_a_new_broker_closes_the_connection(
    brokers: tuple[Kafka, Kafka], tmp_path_factory: pytest.TempPathFactory
) -> None:
    proxy = ProxyProcess(tmp_path_factory.mktemp("unchanged"), brokers[1].bootstrap)
    names = {kind: f"legacy-{kind}" for kind in LEGACY_TOPICS}
    case = next(stored(time.time_ns() // 1_000_000))
    request = Request(2, [("open", [(0, case.records)])])
    try:
        proxy.start()
        direct, through = (Side(a, names) for a in (brokers[1].bootstrap, f"127.0.0.1:{proxy.broker_port(1)}"))

        assert (direct.ask(request), through.ask(request)) == (CLOSED, CLOSED)
    finally:
        proxy.stop()
