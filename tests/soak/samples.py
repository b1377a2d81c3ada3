"""Takes samples of a proxy's resources every second, and of two clients' waits, at the proxy and at the brokers."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle
from statistics import median
from typing import Self

from tests.bounds.resident import resident_bytes
from tests.broker.background import Background
from tests.faults.left import count_descriptors
from tests.faults.setting import FaultSetting
from tests.soak.slope import Slope, slope_of
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import CLOSED, SILENCE, RawClient, topic_data

_EVERY_SECONDS = 1.0
_BEGINNING = 0.2
"""The share of all samples that is omitted at the start, when caches and pools fill."""
_SPANS = 40
"""The number of spans. The medians of spans are independent of delays by single faults."""
_END = 1 - (1 - _BEGINNING) / 3
"""The share of all samples after which all caches and pools are full."""
MEMORY, MEMORY_AT_THE_END = "memory, MB", "memory, MB, of the last third of these samples"
DESCRIPTORS, ADDED = "descriptors", "wait for one record, ms more than at the brokers"
WAIT, DIRECT_WAIT = "wait for one record, ms", "the same at the brokers, ms"


@dataclass(frozen=True, slots=True)
class Sample:
    """`second`: since the start."""

    second: float
    value: float


@dataclass(slots=True)
class Samples:
    """All samples; a wait is the time until one record was stored (ms)."""

    memory_mb: list[Sample] = field(default_factory=list)
    descriptors: list[Sample] = field(default_factory=list)
    waits: list[Sample] = field(default_factory=list)
    direct_waits: list[Sample] = field(default_factory=list)

    def slopes(self) -> dict[str, Slope]:
        """Return the slopes after the start. A busy machine delays both clients; the difference is the proxy's."""
        ends = self.memory_mb[-1].second
        began = ends * _BEGINNING
        waits, direct = (_medians(each, began, ends) for each in (self.waits, self.direct_waits))
        added = {at: waits[at] - direct[at] for at in waits.keys() & direct.keys()}
        return {
            MEMORY: _slope([each for each in self.memory_mb if each.second >= began]),
            MEMORY_AT_THE_END: _slope([each for each in self.memory_mb if each.second >= ends * _END]),
            DESCRIPTORS: _slope([each for each in self.descriptors if each.second >= began]),
            ADDED: _slope([Sample(*each) for each in added.items()]),
            WAIT: _slope([Sample(*each) for each in waits.items()]),
            DIRECT_WAIT: _slope([Sample(*each) for each in direct.items()]),
        }

    def medians(self) -> tuple[float, float]:
        """Return the median waits at the proxy and at the brokers (ms)."""
        return median(each.value for each in self.waits), median(each.value for each in self.direct_waits)


def _medians(samples: Sequence[Sample], began: float, ends: float) -> dict[float, float]:
    """Return medians by the start of each span (s), without spans that have no sample."""
    span = (ends - began) / _SPANS
    grouped: dict[float, list[float]] = {}
    for each in samples:
        if began <= each.second < ends:
            grouped.setdefault(began + (each.second - began) // span * span, []).append(each.value)
    return {at: median(values) for at, values in grouped.items()}


def _slope(samples: Sequence[Sample]) -> Slope:
    return slope_of([each.second for each in samples], [each.value for each in samples])


class SampleClient:
    """Within `with`: a client that produces up to five records a second, one at a time."""

    def __init__(
        self, connected: Callable[[str], RawClient], bootstrap: str, topic: str, began: float, waits: list[Sample]
    ) -> None:
        """`connected` opens a client of an address. `bootstrap`: one or several addresses; some may be unreachable."""
        self._connected = connected
        self._addresses = cycle(bootstrap.split(","))
        self._topic = topic
        self._began = began
        self._waits = waits
        self._background = Background(self._ask)

    def __enter__(self) -> Self:
        self._background.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._background.stop()

    def _ask(self) -> None:
        while not self._background.is_stopped:
            try:
                with self._connected(self._leader()) as client:
                    self._ask_on(client)
            except (OSError, AssertionError, ValueError):  # the last two are raised if no leader is known
                self._background.wait_and_continue(_EVERY_SECONDS)  # during a fault

    def _leader(self) -> str:
        with self._connected(next(self._addresses)) as client:
            response = client.metadata(self._topic)
        leader = response["topics"][0]["partitions"][0]["leader_id"]
        (found,) = (f"{each['host']}:{each['port']}" for each in response["brokers"] if each["node_id"] == leader)
        return found

    def _ask_on(self, client: RawClient) -> None:
        while self._background.wait_and_continue(_EVERY_SECONDS / 5):
            records = batch([Rec(time.time_ns() // 1_000_000)])
            asked = time.monotonic()
            response = client.produce(9, [topic_data(self._topic, (0, records))])
            if response in (CLOSED, SILENCE):
                return
            assert isinstance(response, dict)
            if response["responses"][0]["partition_responses"][0]["error_code"] != 0:
                return  # the leader has changed
            responded_at = time.monotonic()
            self._waits.append(Sample(responded_at - self._began, (responded_at - asked) * 1000))


class Sampling:
    """Within `with`: runs both clients and samples the processes."""

    def __init__(self, setting: FaultSetting, topic: str) -> None:
        self.samples = Samples()
        self._proxy = setting.proxy
        self._began = time.monotonic()
        self._looking = Background(self._look)
        self._asking = [
            SampleClient(setting.client_at, self._proxy.bootstrap, topic, self._began, self.samples.waits),
            SampleClient(RawClient, setting.cluster.bootstrap, topic, self._began, self.samples.direct_waits),
        ]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        for each in self._asking:
            self._stack.enter_context(each)
        self._looking.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._looking.stop()
        self._stack.close()

    def _look(self) -> None:
        assert self._proxy.process is not None
        while self._looking.wait_and_continue(_EVERY_SECONDS):
            memory, count = resident_bytes(self._proxy.process.pid), count_descriptors(self._proxy).total()
            second = time.monotonic() - self._began
            self.samples.memory_mb.append(Sample(second, memory / 1e6))
            self.samples.descriptors.append(Sample(second, float(count)))
