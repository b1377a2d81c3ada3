"""Four sample producers, which are real librdkafka clients. One sends valid records; the others
make common mistakes.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaError, Message, Producer

_PAUSE_SECONDS = 0.25
_FLUSH_SECONDS = 5
Timestamp = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class SampleProducer:
    """Sends four records at a time to `topic`.

    In every `bad_every`th group, the last record has a wrong timestamp or no key.
    """

    client_id: str
    topic: str
    bad_every: int
    bad_time: Timestamp
    bad_key: str | None = "key"


SAMPLES = (
    SampleProducer("checkout", "payments", 0, lambda now: now),
    SampleProducer("legacy-billing", "payments", 3, lambda now: now * 1_000_000),
    SampleProducer("sensor-gateway", "telemetry", 4, lambda now: now // 1000),
    SampleProducer("order-sync", "orders.eu", 5, lambda now: now, None),
)


class SampleStream:
    """Runs the sample producers in threads until stopped.

    `delivered` is called for each record with its client id, and with the client's error or None.
    """

    def __init__(self, bootstrap: str, delivered: Callable[[str, str | None], None]) -> None:
        self._bootstrap = bootstrap
        self._delivered = delivered
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(sample,), daemon=True) for sample in SAMPLES]

    def start(self) -> None:
        """Start sending records."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop sending records, and wait for those in flight."""
        self._stop.set()
        for thread in self._threads:
            thread.join(_FLUSH_SECONDS + 1)

    def _run(self, sample: SampleProducer) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "client.id": sample.client_id,
                "linger.ms": 50,
                "compression.type": "lz4",
                "log_level": 0,
            }
        )

        def on_delivery(error: KafkaError | None, _: Message) -> None:
            self._delivered(sample.client_id, None if error is None else str(error.str()))

        rounds = 0
        while not self._stop.wait(_PAUSE_SECONDS):
            rounds += 1
            now = time.time_ns() // 1_000_000
            bad = sample.bad_every and rounds % sample.bad_every == 0
            for i in range(4):
                wrong = bad and i == 3
                producer.produce(
                    sample.topic,
                    b'{"sample": true}',
                    sample.bad_key if wrong else f"key-{i}",
                    partition=rounds % 2,
                    timestamp=sample.bad_time(now) if wrong else now,
                    on_delivery=on_delivery,
                )
            producer.poll(0)
        producer.flush(_FLUSH_SECONDS)
