"""What a proxy holds, and how long a client of it waits, once a second."""

import threading
import time
from dataclasses import dataclass, field
from typing import Self

from tests.bounds.resident import resident_bytes
from tests.broker.proxy_process import ProxyProcess
from tests.faults.left import descriptors
from tests.integration.test_produce import leader_of
from tests.soak.slope import Slope, slope_of
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import CLOSED, SILENCE, RawClient, topic_data

_EVERY_SECONDS = 1.0
_ASKED_SECONDS = 10
_BEGINNING = 0.2
"""Of all samples: until then everything is met for the first time."""


@dataclass(slots=True)
class Samples:
    """`waits`: until one record was stored, in ms; a fault makes some long, so that their median is what counts."""

    seconds: list[float] = field(default_factory=list)
    memory_mb: list[float] = field(default_factory=list)
    descriptors: list[float] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)

    def slopes(self) -> dict[str, Slope]:
        """Behind the beginning."""
        first = int(len(self.seconds) * _BEGINNING)
        began = self.seconds[first]
        waits = [(second, wait) for second, wait in self.waits if second >= began]
        usual = sorted(wait for _, wait in waits)[: len(waits) * 9 // 10 + 1]  # faults make the others
        calm = [(second, wait) for second, wait in waits if wait <= usual[-1]]
        return {
            "memory, MB": slope_of(self.seconds[first:], self.memory_mb[first:]),
            "descriptors": slope_of(self.seconds[first:], self.descriptors[first:]),
            "wait for one record, ms": slope_of(*(list(column) for column in zip(*calm, strict=True))),
        }


class Sampling:
    """Within `with`: one client that produces one record at a time, and a look at the processes."""

    def __init__(self, proxy: ProxyProcess, topic: str) -> None:
        self.samples = Samples()
        self._proxy = proxy
        self._topic = topic
        self._began = time.monotonic()
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._look, self._ask)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    @property
    def _second(self) -> float:
        return time.monotonic() - self._began

    def _look(self) -> None:
        assert self._proxy.process is not None
        while not self._stopped.wait(_EVERY_SECONDS):
            memory, count = resident_bytes(self._proxy.process.pid), descriptors(self._proxy).total()
            self.samples.seconds.append(self._second)
            self.samples.memory_mb.append(memory / 1e6)
            self.samples.descriptors.append(float(count))

    def _ask(self) -> None:
        while not self._stopped.is_set():
            try:
                with RawClient(leader_of(self._proxy, self._topic), _ASKED_SECONDS) as client:
                    self._ask_on(client)
            except (OSError, AssertionError):  # the latter where nobody says who leads
                self._stopped.wait(_EVERY_SECONDS)  # a fault; somebody else says whether it is over

    def _ask_on(self, client: RawClient) -> None:
        while not self._stopped.wait(_EVERY_SECONDS / 5):
            records = batch([Rec(time.time_ns() // 1_000_000)])
            began = time.monotonic()
            answer = client.produce(9, [topic_data(self._topic, (0, records))])
            if answer in (CLOSED, SILENCE):
                return
            assert isinstance(answer, dict)
            if answer["responses"][0]["partition_responses"][0]["error_code"] != 0:
                return  # its leader is another one
            self.samples.waits.append((self._second, (time.monotonic() - began) * 1000))
