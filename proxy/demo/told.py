"""What the demo knows: what each producer was told by its own client, and the last rejections of the proxy."""

import threading
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

from sluicegate.proxy.demo.sample_stream import SAMPLES
from sluicegate.proxy.reporting.events.violation_event import Event, event_of

_SAMPLES = frozenset(sample.client_id for sample in SAMPLES)
_OTHERS_SHOWN = 3
REJECTIONS_KEPT = 2
ELSE = "(other clients)"


@dataclass(frozen=True, slots=True)
class Rejection:
    """One rejected batch: `why` in a few words, `details` in lines."""

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
    """One producer. `delivered` is none where only the producer itself knows."""

    client_id: str
    topic: str
    delivered: int | None
    rejected: int
    why: str


class Told:
    """Written to by the proxy's writer and the sample clients, each in a thread; read by who shows it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._delivered: Counter[str] = Counter()
        self._rejected: Counter[str] = Counter()
        self._last: dict[str, Rejection] = {}
        self._unseen: deque[Rejection] = deque(maxlen=1000)
        self.rejections: deque[Rejection] = deque(maxlen=REJECTIONS_KEPT)

    def write(self, event: Event) -> None:
        """What is to be said of one partition."""
        rejection = _rejection_of(event)
        with self._lock:
            name = self._row_of(rejection.client_id)
            self._last[name] = rejection
            self._rejected[name] += 1
            self.rejections.append(rejection)
            self._unseen.append(rejection)

    def close(self) -> None:
        """Nothing is kept."""

    def _row_of(self, client_id: str) -> str:
        if client_id in _SAMPLES or client_id in self._last:
            return client_id
        return client_id if len(self._last.keys() - _SAMPLES) < _OTHERS_SHOWN else ELSE

    def answered(self, client_id: str, error: str | None) -> None:
        """What a sample producer's client was told of a record; rejections come with more from the proxy itself."""
        if error is None:
            with self._lock:
                self._delivered[client_id] += 1

    def new_rejections(self) -> list[Rejection]:
        """Those that came since this was asked before, a thousand at most."""
        with self._lock:
            new = list(self._unseen)
            self._unseen.clear()
        return new

    def rows(self) -> Iterator[Row]:
        """The sample producers, then who else was rejected something."""
        with self._lock:
            last, delivered, rejected = dict(self._last), Counter(self._delivered), Counter(self._rejected)
        for sample in SAMPLES:
            found = last.pop(sample.client_id, None)
            why = "" if found is None else found.why
            yield Row(sample.client_id, sample.topic, delivered[sample.client_id], rejected[sample.client_id], why)
        for name, found in last.items():
            yield Row(name, found.topic, None, rejected[name], found.why)


def _rejection_of(event: Event) -> Rejection:
    said = event_of(event)
    reason, details = str(said["reason"]), ("it concerns the whole batch", str(said["reason"]))
    why = reason
    for sample in said["samples"][:1]:
        words = str(sample.get("diagnosis") or sample["reason"])
        why = words.partition(":")[0]
        details = (f"record {sample['index']} has timestamp {sample['timestamp']}", words)
    return Rejection(
        str(said["client_id"] or "(no client id)"),
        str(said["topic"]),
        int(said["partition"]),
        str(said["error"]),
        int(said["bad_records"]),
        int(said["records"]),
        why,
        details,
    )
