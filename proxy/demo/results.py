"""The demo's results: the deliveries that each producer's client reports, and the proxy's rejections."""

import threading
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

from sluicegate.proxy.demo.sample_stream import SAMPLES
from sluicegate.proxy.reporting.events.violation_event import Event, event_of

_SAMPLES = frozenset(sample.client_id for sample in SAMPLES)
_MOST_OTHER_CLIENTS = 3
REJECTIONS_KEPT = 2
OTHER_CLIENTS = "(other clients)"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected batch. `why` is a short reason, and `details` contains lines of explanation."""

    client_id: str
    topic: str
    partition: int
    error: str
    bad_records: int
    records: int
    why: str
    details: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """A producer. `delivered` is None if unknown, because the producer is not one of the samples."""

    client_id: str
    topic: str
    delivered: int | None
    rejected: int
    why: str


class DemoResults:
    """Collects results from the proxy's writer and the sample clients, which run in threads. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._delivered: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._last: dict[str, Rejection] = {}
        self._unseen: deque[Rejection] = deque(maxlen=1000)
        self.rejections: deque[Rejection] = deque(maxlen=REJECTIONS_KEPT)

    def write(self, event: Event) -> None:
        """Store the violation event of one partition."""
        rejection = _rejection_of(event)
        with self._lock:
            name = self._row_of(rejection.client_id)
            self._last[name] = rejection
            self._rejected[name] += 1
            self.rejections.append(rejection)
            self._unseen.append(rejection)

    def close(self) -> None:
        """Do nothing, because there is no file to close."""

    def _row_of(self, client_id: str) -> str:
        if client_id in _SAMPLES or client_id in self._last:
            return client_id
        return client_id if len(self._last.keys() - _SAMPLES) < _MOST_OTHER_CLIENTS else OTHER_CLIENTS

    def delivered(self, client_id: str, error: str | None) -> None:
        """Count a delivered record. Rejections come from the proxy's own events instead."""
        if error is None:
            with self._lock:
                self._delivered[client_id] += 1

    def new_rejections(self) -> list[Rejection]:
        """Return the rejections since the last call, at most a thousand."""
        with self._lock:
            new = list(self._unseen)
            self._unseen.clear()
        return new

    def rows(self) -> Iterator[Row]:
        """Yield the sample producers, then other clients with rejections."""
        with self._lock:
            last, delivered, rejected = dict(self._last), Counter(self._delivered), Counter(self._rejected)
        for sample in SAMPLES:
            found = last.pop(sample.client_id, None)
            why = "" if found is None else found.why
            yield Row(sample.client_id, sample.topic, delivered[sample.client_id], rejected[sample.client_id], why)
        for name, found in last.items():
            yield Row(name, found.topic, None, rejected[name], found.why)


def _rejection_of(event: Event) -> Rejection:
    fields = event_of(event)
    reason, details = str(fields["reason"]), ("the whole batch is rejected", str(fields["reason"]))
    why = reason
    for sample in fields["samples"][:1]:
        text = str(sample.get("diagnosis") or sample["reason"])
        why = text.partition(":")[0]
        details = (f"record {sample['index']} has timestamp {sample['timestamp']}", text)
    return Rejection(
        str(fields["client_id"] or "(no client id)"),
        str(fields["topic"]),
        int(fields["partition"]),
        str(fields["error"]),
        int(fields["bad_records"]),
        int(fields["records"]),
        why,
        details,
    )
