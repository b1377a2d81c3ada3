"""The state topic reports why a change was not stored, and whether the same change may be stored later."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest

from sluicegate.config.loading import config_of
from sluicegate.proxy.state import agreed_state, state_topic
from sluicegate.proxy.state.change import Actor, SetTopicSetting, StateChange
from sluicegate.proxy.state.state_topic import StateTopic, StateUnwritable
from sluicegate.proxy.state.topic_description import TopicDescription
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.writing.topic_writer import DeliveryFailure
from tests.broker.eventually import eventually

EOF = confluent_kafka.KafkaError(confluent_kafka.KafkaError._PARTITION_EOF)
OPERATION = SetTopicSetting("orders", "id", "sluicegate.owner", "payments")
CHANGE = StateChange("1", 0, Actor("terraform", "192.0.2.1:5"), "a", OPERATION)
SECONDS = 10.0


class Message:
    def __init__(self, offset: int, value: bytes | None) -> None:
        self._offset = offset
        self._value = value

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes | None:
        return self._value

    def error(self) -> Any:
        return EOF if self._value is None else None


class PartitionInMemory:
    """The producer and the consumer of a partition. `failure` is that of each record that is written."""

    def __init__(self) -> None:
        self.failure: DeliveryFailure | None = None
        self._records: list[bytes] = []
        self._read = -1

    def write(self, _topic: str, _key: bytes, value: bytes, _headers: Any, delivered: Callable[..., None]) -> None:
        if self.failure is None:
            self._records.append(value)
        delivered(self.failure)

    def serve(self, seconds: float) -> None:
        """Do nothing, because `write` reports the delivery."""

    def assign(self, partitions: Any) -> None:
        """Do nothing, because there is one partition."""

    def get_watermark_offsets(self, *_: Any, **__: Any) -> tuple[int, int]:
        return 0, len(self._records)

    def poll(self, seconds: float) -> Message | None:
        self._read += 1
        if self._read == 0:
            return Message(0, None)
        if self._read <= len(self._records):
            return Message(self._read - 1, self._records[self._read - 1])
        self._read -= 1
        time.sleep(min(seconds, 0.01))
        return None

    def close(self) -> None:
        """Do nothing, because there is no connection."""


@pytest.fixture
def partition(monkeypatch: pytest.MonkeyPatch) -> PartitionInMemory:
    made = PartitionInMemory()
    for name in ("connected", "TopicWriter"):
        monkeypatch.setattr(state_topic, name, lambda *_: made)
    monkeypatch.setattr(state_topic, "admin_client", lambda _: None)
    monkeypatch.setattr(state_topic, "describe", lambda *_: TopicDescription("id", 1, 1))
    return made


@pytest.fixture
def topic(partition: PartitionInMemory) -> Iterator[StateTopic]:
    config = config_of(
        {
            "upstream": {"bootstrap": "127.0.0.1:1"},
            "listen": {"bootstrap": "127.0.0.1:0", "broker_port_base": 29_000},
            "state": {"topic": "state"},
        }
    )
    assert config.state is not None
    read: list[bool] = []
    nothing: Callable[..., Any] = lambda *_: ()  # noqa: E731
    made = StateTopic(config.state, config.upstream, nothing, nothing, Status(), nothing, lambda: read.append(True))
    made.start()
    eventually(lambda: read)
    yield made
    made.close()


def test_commit_returns_after_the_change_is_read_back(topic: StateTopic) -> None:
    topic.commit([CHANGE], SECONDS)

    found = topic.settings.of("orders")
    assert found is not None
    assert found.values == {"sluicegate.owner": "payments"}


@pytest.mark.parametrize("is_lasting", [False, True])
def test_write_failure_is_temporary_unless_the_broker_rejects_permanently(
    topic: StateTopic, partition: PartitionInMemory, is_lasting: bool
) -> None:
    partition.failure = DeliveryFailure("the reason", is_lasting)
    with pytest.raises(StateUnwritable, match="cannot be written: the reason") as raised:
        topic.commit([CHANGE], SECONDS)
    assert raised.value.is_temporary != is_lasting


def test_change_beyond_the_settings_limit_fails_immediately(topic: StateTopic, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record is read back, but the settings of all topics would be too large."""
    monkeypatch.setattr(agreed_state, "MAX_SETTINGS_CHARACTERS", 10)
    began = time.monotonic()
    with pytest.raises(StateUnwritable, match="topic settings of more than") as raised:
        topic.commit([CHANGE], 60)
    assert not raised.value.is_temporary
    assert time.monotonic() - began < 30
    assert topic.settings.of("orders") is None
