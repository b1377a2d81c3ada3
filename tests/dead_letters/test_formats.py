"""The reader reads each writer's letters as they were written. The headers in `letters.py` come from the writers'
sources."""

import json
from typing import Any

import pytest
from confluent_kafka.schema_registry.rules.dlq.dlq_action import DlqAction
from confluent_kafka.schema_registry.schema_registry_client import Rule, RuleKind, RuleMode
from confluent_kafka.schema_registry.serde import RuleContext
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError

from sluicegate.dead_letters import Headers, Letter, LetterFormat, Obstacle, read_letter
from sluicegate.validation.dispositions.quarantine import as_written
from tests.dead_letters.letters import (
    CONNECT,
    OWN,
    SHARE_GROUP,
    SLUICEGATE,
    SPRING,
    STREAMS,
    TIME,
    letter,
    record,
)


def origin(found: Letter) -> tuple[str, int | None, int | None, int | None]:
    return found.topic, found.partition, found.offset, found.timestamp


def test_reads_letters_of_quarantine() -> None:
    found = letter((*OWN, *SLUICEGATE, (b"sluicegate.rule", b"has-tenant, has-id")))

    assert found.format is LetterFormat.SLUICEGATE
    assert origin(found) == ("orders", 2, None, -5)
    assert (found.headers, found.error, found.client) == (OWN, "timestamp_in_future", "shop")
    assert found.rules == ("has-tenant", "has-id")
    assert found.obstacle is None


def test_reads_header_names_that_quarantine_has_packed() -> None:
    own = [(b"\xff\0", b"1"), (b"a", None)]
    written = tuple((name.encode(), value) for name, value in as_written(own, lambda: None))

    assert letter((*written, *SLUICEGATE)).headers == tuple(own)


def test_a_copy_of_a_stored_record_is_an_obstacle() -> None:
    assert letter((*SLUICEGATE, (b"sluicegate.copy", b"true"))).obstacle is Obstacle.COPY


@pytest.mark.parametrize("headers", [CONNECT, STREAMS, SHARE_GROUP])
def test_a_header_without_a_name_is_the_records_own(headers: Headers) -> None:
    unnamed = (b"", b"7")

    assert letter((unnamed, *headers)) == letter(headers)._replace(
        record=record((unnamed, *headers)), headers=(unnamed,)
    )


def test_reads_letters_of_connect() -> None:
    found = letter((*OWN, *CONNECT))

    assert found.format is LetterFormat.CONNECT
    assert origin(found) == ("orders", 2, 41, TIME), "the reporter writes the timestamp of the original"
    assert (found.headers, found.stage, found.client) == (OWN, "VALUE_CONVERTER", "to-warehouse")
    assert found.error == "org.apache.kafka.connect.errors.DataException"
    assert found.text == "Converting byte[] to Kafka Connect data failed"


def test_reads_letters_of_streams() -> None:
    found = letter((*OWN, *STREAMS))

    assert found.format is LetterFormat.STREAMS
    assert origin(found) == ("orders", 2, 41, TIME)
    assert (found.headers, found.error) == (OWN, "org.apache.kafka.common.errors.SerializationException")
    assert found.text == "Size of data received by LongDeserializer is not 8"


def test_reads_letters_of_share_groups() -> None:
    found = letter(SHARE_GROUP)

    assert found.format is LetterFormat.SHARE_GROUP
    assert origin(found) == ("orders", 2, 41, None), "the broker writes the time of its write"
    assert (found.attempts, found.client) == (5, "packers")
    assert found.text == "Offset delivery count exceeded the threshold."
    assert found.obstacle is None


def test_a_share_groups_letter_without_the_record_is_an_obstacle() -> None:
    found = read_letter(record(SHARE_GROUP, None)._replace(key=None))

    assert found is not None
    assert found.obstacle is Obstacle.NOT_COPIED


def test_reads_letters_of_spring() -> None:
    found = letter((*OWN, *SPRING))

    assert found.format is LetterFormat.SPRING
    assert origin(found) == ("orders", 2, 41, 1_764_000_000_000)
    assert (found.headers, found.error, found.client) == (OWN, "java.lang.IllegalStateException", "packers")
    assert found.text == "Listener failed; order 17 has no lines"


class OneRecord:
    """A producer of confluent-kafka that keeps its record."""

    headers: Headers = ()
    value: bytes | None = None

    def produce(self, _topic: str, key: bytes | None, value: bytes | None, headers: Any, on_delivery: Any) -> None:
        self.value = value
        self.headers = tuple((name.encode(), data) for name, data in headers)

    def poll(self, _seconds: float) -> None: ...


@pytest.mark.parametrize("mode", [RuleMode.READ, RuleMode.WRITE])
def test_reads_letters_of_confluents_own_dlq_action(mode: RuleMode) -> None:
    kept = OneRecord()
    action = DlqAction({"dlq.topic": "dead", "producer": kept})
    rule = Rule("has-tenant", None, RuleKind.CONDITION, mode, "CEL", [], None, "true", None, "DLQ", False)
    of = SerializationContext("orders", MessageField.VALUE, [("trace", b"7")])
    original = b"\0\0\0\0\1x" if mode is RuleMode.READ else {"tenant": None}
    context = RuleContext(None, of, None, None, "orders-value", mode, rule, 0, [rule], {}, None, b"k", original)

    with pytest.raises(SerializationError):
        action.run(context, original, ValueError("Expr failed: 'tenant'"))
    found = letter(kept.headers, kept.value)

    assert found.format is LetterFormat.CONFLUENT_RULE
    assert origin(found) == ("orders", None, None, None)
    assert (found.rules, found.stage, found.client) == (("has-tenant",), mode.value, "orders-value")
    assert found.text == "Expr failed: 'tenant'"
    assert found.headers == ((b"trace", b"7"),)
    if mode is RuleMode.READ:
        assert (kept.value, found.obstacle) == (original, None)
    else:
        assert json.loads(kept.value or b"") == original
        assert found.obstacle is Obstacle.NOT_ORIGINAL


def test_a_letter_has_the_format_of_its_last_writer() -> None:
    found = letter((*CONNECT, *SLUICEGATE))

    assert found.format is LetterFormat.SLUICEGATE
    assert found.headers == CONNECT, "the proxy validated the record with the headers of Connect"


@pytest.mark.parametrize(
    "headers",
    [
        (),
        OWN,
        ((b"sluicegate.topic", None), (b"sluicegate.reason", b"null_key")),
        ((b"__connect.errors.topic", b""),),
        ((b"sluicegate.topic", b"orders"),),
    ],
)
def test_records_without_headers_of_a_known_format_are_not_letters(headers: Headers) -> None:
    assert read_letter(record(headers)) is None


@pytest.mark.parametrize("number", [b"", b"x", b"9" * 21, b"9" * 20, b"\xc2\xb2", b"1_0", b" 1", b"--1"])
def test_malformed_offsets_of_other_writers_are_read_as_none(number: bytes) -> None:
    headers = tuple((name, number if name == b"__connect.errors.offset" else value) for name, value in CONNECT)

    assert letter(headers).offset is None


def test_long_texts_of_other_writers_are_truncated() -> None:
    found = letter(
        ((b"__connect.errors.topic", b"t" * 10**6), (b"__connect.errors.exception.message", b"\xff" * 10**6))
    )

    assert len(found.topic) == 1024
    assert len(found.text) == 4096
