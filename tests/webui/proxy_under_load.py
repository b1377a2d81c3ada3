"""Runs a proxy with two workers in front of an embedded cluster, with good and bad producers."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer

from sluicegate.proxy.demo.sample_stream import SampleStream
from sluicegate.proxy.sandbox.mock_cluster import MockCluster
from tests.broker.proxy_process import ProxyProcess

BOUNDS = {"message.timestamp.before.max.ms": "1d", "message.timestamp.after.max.ms": "1h"}
POLICIES = {
    "defaults": BOUNDS,
    "topics": [{"match": "orders.*", "cleanup.policy": "compact"}],
    "log": {"level": "error"},
}
HOSTILE = (
    "<script>document.title='taken'</script>",
    '"><img src=x onerror="document.title=1">',
    "n" * 4000,
    "\u0645\u0631\u062d\u0628\u0627 \u202egnp.exe",
    "lines\r\n\x1b[31mand escapes",
)
_LONG_TOPIC = "a-topic-with-a-long-name." + "x" * 200


@contextmanager
def proxy_under_load(folder: Path, workers: int = 2) -> Iterator[ProxyProcess]:
    """Yield the proxy and run it until the end of the block."""
    cluster = MockCluster(2)
    proxy = ProxyProcess(folder, ",".join(cluster.bootstrap), {**POLICIES, "workers": workers})
    stream, ended = None, threading.Event()
    try:
        proxy.start()
        stream = SampleStream(proxy.bootstrap, lambda _client_id, _error: None)
        stream.start()
        hostile = threading.Thread(target=_produce_as, args=(proxy.bootstrap, ended), daemon=True)
        hostile.start()
        yield proxy
    finally:
        ended.set()
        if stream is not None:
            stream.stop()
            hostile.join(30)
        proxy.stop()


def _produce_as(bootstrap: str, ended: threading.Event) -> None:
    producers = [Producer({"bootstrap.servers": bootstrap, "client.id": name, "log_level": 0}) for name in HOSTILE]
    while not ended.wait(0.2):
        now = time.time_ns() // 1_000_000
        for number, producer in enumerate(producers):
            topic = _LONG_TOPIC if number % 2 else "payments"
            for timestamp in (now, now - 2_000, now - 3 * 86_400_000 * (number % 3), now * 1000):
                producer.produce(topic, b"v", b"k", timestamp=timestamp)
            producer.poll(0)
    for producer in producers:
        producer.purge()
