"""Gradual enforcement and its suspension change while clients write, and no record is lost or stored twice."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest
import yaml
from confluent_kafka import KafkaError, Message, Producer

from tests.broker.background import Background
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.faults.load import PARTITIONS, TIMEOUT_SECONDS, Records
from tests.faults.reader import read_stored_numbers
from tests.integration.test_reload import AFTER, HOUR
from tests.integration.topics import UNVALIDATED, create_topic
from tests.proxy.cli.test_commands import sluicegate

pytestmark = pytest.mark.long

# The last error is librdkafka's for a good record in a bad record's batch. Records share a batch until librdkafka knows
# the topic.
_REJECTED = (KafkaError.INVALID_TIMESTAMP, KafkaError.INVALID_RECORD, KafkaError._INVALID_DIFFERENT_RECORD)
_PAUSE_SECONDS = 0.01


class MixedLoad:
    """A client that writes good records, and records two hours ahead; it remembers what the proxy did with each."""

    def __init__(self, bootstrap: str, client_id: str, topic: str) -> None:
        self.acknowledged: Records = {partition: [] for partition in range(PARTITIONS)}
        self.trouble: str | None = None
        self.newest_bad = {"acknowledged": -1, "rejected": -1}
        """The highest number of a bad record with each outcome."""
        self._number = self._answered = 0
        self._topic = topic
        settings = {"bootstrap.servers": bootstrap, "client.id": client_id, "linger.ms": 2, "log_level": 0}
        self._producer = Producer(settings | {"delivery.timeout.ms": TIMEOUT_SECONDS * 1000})
        self._background = Background(self._run)

    def __enter__(self) -> Self:
        self._background.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._background.stop()
        self._producer.purge()

    def wait_until_bad_records_are(self, outcome: str) -> None:
        """Wait for the outcome of a bad record that is sent from now on."""
        sent = self._number

        def is_seen() -> bool:
            assert self.trouble is None, self.trouble
            return self.newest_bad[outcome] >= sent

        eventually(is_seen, what=f"bad records that are {outcome}")

    def stop(self) -> None:
        """Send no more, and wait for all outcomes."""
        self._background.stop()
        assert self._producer.flush(TIMEOUT_SECONDS) == 0
        assert self.trouble is None, self.trouble
        assert self._answered == self._number

    def _run(self) -> None:
        while not self._background.is_stopped and self.trouble is None:
            number, self._number = self._number, self._number + 1
            ahead = 2 * HOUR if _is_bad(number) else 0
            self._producer.produce(
                self._topic,
                str(number).encode(),
                partition=number // 2 % PARTITIONS,
                timestamp=time.time_ns() // 1_000_000 + ahead,
                on_delivery=self._delivered,
            )
            self._producer.poll(0)
            self._background.wait_and_continue(_PAUSE_SECONDS)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        number = int(message.value())
        self._answered += 1
        if error is None:
            self.acknowledged[message.partition()].append(number)
        elif error.code() not in _REJECTED:
            self.trouble = f"record {number}: {error}"
        if _is_bad(number):
            outcome = "acknowledged" if error is None else "rejected"
            self.newest_bad[outcome] = max(self.newest_bad[outcome], number)


def _is_bad(number: int) -> bool:
    return number % 2 == 1


@pytest.fixture(params=[1, 2], ids=["one process", "two workers"])
def proxy(request: pytest.FixtureRequest, kafka_bootstrap: str, tmp_path: Path) -> Iterator[ProxyProcess]:
    (tmp_path / "token").write_text("sesame")
    process = ProxyProcess(tmp_path, kafka_bootstrap, {"workers": request.param, "defaults": {AFTER: HOUR}})
    process.config["admin"]["token_file"] = str(tmp_path / "token")
    try:
        yield process.start()
    finally:
        process.stop()


def test_gradual_enforcement_and_break_glass_under_load_lose_nothing(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topics = [create_topic(kafka_bootstrap, UNVALIDATED, PARTITIONS) for _ in range(2)]
    first, second = loads = [
        MixedLoad(proxy.bootstrap, client_id, topic)
        for client_id, topic in zip(("team-a", "team-b"), topics, strict=True)
    ]
    options = ("--admin", proxy.config["admin"]["listen"], "--token-file", proxy.config["admin"]["token_file"])

    def is_enforced(for_first: bool, for_second: bool) -> None:
        for load, is_enforced in ((first, for_first), (second, for_second)):
            load.wait_until_bad_records_are("rejected" if is_enforced else "acknowledged")

    with ExitStack() as at_work:
        for load in loads:
            at_work.enter_context(load)
        is_enforced(True, True)
        _write(proxy, {AFTER: HOUR, "enforce": {"clients": ["team-a"]}})
        is_enforced(True, False)
        _write(proxy, {AFTER: HOUR, "enforce": {"percent": 0}})
        is_enforced(False, False)
        _write(proxy, {AFTER: HOUR})
        is_enforced(True, True)
        assert sluicegate("suspend", "--all", "--reason", "incident", "--for", "1h", *options).returncode == 0
        is_enforced(False, False)
        assert sluicegate("resume", "--all", *options).returncode == 0
        is_enforced(True, True)
        assert sluicegate("suspend", topics[1], "--reason", "incident", "--for", "1h", *options).returncode == 0
        is_enforced(True, False)
        for load in loads:
            load.stop()

    for load, topic in zip(loads, topics, strict=True):
        found = read_stored_numbers(kafka_bootstrap, topic)
        assert {partition: sorted(numbers) for partition, numbers in found.items()} == {
            partition: sorted(numbers) for partition, numbers in load.acknowledged.items()
        }
        assert sum(map(len, found.values())) > 0


def _write(proxy: ProxyProcess, defaults: dict[str, Any]) -> None:
    """Replace the file atomically, as an editor or a ConfigMap does."""
    new = proxy.folder / "new.yaml"
    new.write_text(yaml.safe_dump(proxy.config | {"defaults": defaults}))
    new.replace(proxy.folder / "sluicegate.yaml")
