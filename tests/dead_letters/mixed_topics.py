"""Defines twenty topics with letters from several writers, grouped by hand before the tool first read them.

A topic's group is a list of letters that have the same cause in a person's judgement. The messages are those of the
libraries that define the exception classes, with different data in them.
"""

from typing import NamedTuple

from sluicegate.dead_letters import Headers
from tests.dead_letters.letters import CONNECT, SHARE_GROUP, SLUICEGATE, SPRING, STREAMS


class Case(NamedTuple):
    """A letter: the writer's headers, with this error, message, stage and rule."""

    writer: Headers
    text: str
    error: str = ""
    stage: str = "VALUE_CONVERTER"
    rule: str = ""


CONFLUENT: Headers = (
    (b"__rule.name", b"has-tenant"),
    (b"__rule.mode", b"READ"),
    (b"__rule.subject", b"orders-value"),
    (b"__rule.topic", b"orders"),
    (b"__rule.exception", b"Rule expr failed: message.tenant != ''"),
)
DATA, SERIALIZATION = (
    "org.apache.kafka.connect.errors.DataException",
    "org.apache.kafka.common.errors.SerializationException",
)
CONNECT_ERROR, STATE = "org.apache.kafka.connect.errors.ConnectException", "java.lang.IllegalStateException"
NULL, NUMBER = "java.lang.NullPointerException", "java.lang.NumberFormatException"
JSON_TOKEN = (
    "Unrecognized token '{}': was expecting (JSON String, Number, Array, Object or token 'null', 'true', 'false')"
)
PARSE = "failed to parse field [{}] of type [long] in document with id 'orders+0+{}'. Preview of field's value: '{}'"
WORDS = ["abc", "n/a", "none", "unknown", "later", "free", "tbd", "soon", "lots", "few", "many", "half", "dozen"]


def connect(text: str, error: str = DATA, stage: str = "VALUE_CONVERTER") -> Case:
    return Case(CONNECT, text, error, stage)


def streams(text: str, error: str = SERIALIZATION) -> Case:
    return Case(STREAMS, text, error)


def spring(text: str, error: str = STATE) -> Case:
    return Case(SPRING, f"Listener failed; {text}", error)


def quarantined(reason: str, rule: str = "") -> Case:
    return Case(SLUICEGATE, "", reason, rule=rule)


def shared(text: str) -> Case:
    return Case(SHARE_GROUP, text)


def ruled(rule: str, text: str, stage: str = "READ") -> Case:
    return Case(CONFLUENT, text, stage=stage, rule=rule)


TOPICS: dict[str, list[list[Case]]] = {
    "converters": [
        [connect("Converting byte[] to Kafka Connect data failed due to serialization error: ")] * 3,
        [connect(f"Failed to deserialize data for topic {name} to Avro: ") for name in ("orders", "orders")],
        [connect("Failed to deserialize integer: ", stage="KEY_CONVERTER")] * 2,
        [streams("Size of data received by LongDeserializer is not 8")] * 2,
    ],
    "schema ids": [
        [streams(f"Error retrieving Avro value schema for id {id}") for id in (17, 4711, 100042)],
        [streams(f"Error deserializing Avro message for id {id}") for id in (3, 17)],
        [streams("Unknown magic byte!")],
        [quarantined("rule_violated", "value-has-schema")] * 2,
    ],
    "not-null constraints": [
        [
            connect(
                f'java.sql.BatchUpdateException: Batch entry {i} INSERT INTO "orders" ("id","amount") '
                f"VALUES ({i},NULL) was "
                'aborted: ERROR: null value in column "amount" violates not-null constraint',
                CONNECT_ERROR,
                "TASK_PUT",
            )
            for i in (0, 17, 250)
        ],
        [
            connect(
                f'java.sql.BatchUpdateException: Batch entry {i} INSERT INTO "orders" ("id","amount") '
                f'VALUES (NULL,{i}.5) was aborted: ERROR: null value in column "id" violates not-null constraint',
                CONNECT_ERROR,
                "TASK_PUT",
            )
            for i in (3, 9)
        ],
        [spring("could not execute statement [n/a]", "org.hibernate.exception.ConstraintViolationException")],
    ],
    "documents": [
        [connect(PARSE.format("amount", i, word), CONNECT_ERROR, "TASK_PUT") for i, word in enumerate(WORDS)],
        [connect(PARSE.format("placed_at", i, word), CONNECT_ERROR, "TASK_PUT") for i, word in enumerate(WORDS)],
    ],
    "listeners": [
        [spring(f"order {i} has no lines") for i in (17, 18, 4711)],
        [spring(f"Connection to 10.0.{i}.1:5432 refused", "org.postgresql.util.PSQLException") for i in (0, 13)],
        [shared("Offset delivery count exceeded the threshold.")] * 2,
        [shared("Offset rejected by client.")] * 2,
    ],
    "tokens": [
        [streams(JSON_TOKEN.format(word), "com.fasterxml.jackson.core.JsonParseException") for word in WORDS],
        [
            streams(
                f"Unexpected end-of-input in VALUE_STRING at [Source: (byte[]); line: 1, column: {i}]", SERIALIZATION
            )
            for i in (4, 81)
        ],
    ],
    "few tokens": [
        [streams(JSON_TOKEN.format(word), "com.fasterxml.jackson.core.JsonParseException") for word in WORDS[:3]],
        [quarantined("rule_violated", "json")] * 2,
    ],
    "quarantine": [
        [quarantined("timestamp_in_future")] * 3,
        [quarantined("timestamp_too_old")],
        [quarantined("rule_violated", "has-tenant")] * 2,
        [quarantined("rule_violated", "has-id")],
        [quarantined("rule_violated", "has-id, has-tenant")],
    ],
    "rules": [
        [ruled("has-tenant", "Rule expr failed: message.tenant != ''")] * 2,
        [ruled("has-tenant", "Rule expr failed: message.tenant != ''", "WRITE")] * 2,
        [ruled("is-paid", "Rule expr failed: message.paid")] * 2,
        [quarantined("rule_violated", "has-tenant")],
    ],
    "times": [
        [
            spring(f"Text '{time}' could not be parsed at index 10", "java.time.format.DateTimeParseException")
            for time in ("2026-11-30 12:00", "2026-11-29 07:15:01", "2025-01-01 00:00")
        ],
        [connect("Could not parse timestamp: value is not an ISO-8601 time", stage="TRANSFORMATION")] * 2,
        [quarantined("timestamp_unit")],
    ],
    "identifiers": [
        [
            spring(f"no customer {id}")
            for id in ("3f2504e0-4f89-11d3-9a0c-0305e82c3301", "7d444840-9dc0-11d1-b245-5ffdce74fad2")
        ],
        [spring(f"no invoice {id}") for id in ("INV-2026-0001", "INV-2026-0977")],
        [connect(f"com.acme.Order@{id} has no currency", stage="TRANSFORMATION") for id in ("1b28cdfa", "7f31245a")],
    ],
    "fields": [
        [connect(f'Invalid value: null used for required field: "{name}", schema type: STRING', stage="TRANSFORMATION")]
        * 3
        for name in ("tenant", "currency", "country")
    ],
    "missing fields": [
        [streams(f"missing field '{name}'", "com.acme.InvalidOrder")] * (i + 1)
        for i, name in enumerate(("tenant", "amount", "lines", "currency"))
    ],
    "numbers": [
        [spring(f'For input string: "{word}"', NUMBER) for word in WORDS],
        [spring("null", NUMBER)],
        [connect(f"Value ({i}) is out of bounds for INT8", stage="TRANSFORMATION") for i in (300, 1000, -400)],
    ],
    "enumerations": [
        [
            spring(f"No enum constant com.acme.Status.{name}", "java.lang.IllegalArgumentException")
            for name in ("SHIPPPED", "LOST", "GONE")
        ],
        [streams("Could not resolve type id 'refund' as a subtype of com.acme.Event", "com.acme.InvalidOrder")] * 2,
    ],
    "protobuf": [
        [
            streams(
                "Protocol message contained an invalid tag (zero).",
                "com.google.protobuf.InvalidProtocolBufferException",
            )
        ]
        * 2,
        [
            streams(
                "While parsing a protocol message, the input ended unexpectedly in the middle of a field.",
                "com.google.protobuf.InvalidProtocolBufferException",
            )
        ],
        [connect(f"Error deserializing Protobuf message for id {i}") for i in (7, 90)],
    ],
    "nulls": [
        [spring('Cannot invoke "com.acme.Order.getLines()" because "order" is null', NULL)] * 3,
        [spring('Cannot invoke "com.acme.Line.getPrice()" because "line" is null', NULL)] * 2,
        [spring("", NULL)],
        [streams("", NULL)],
    ],
    "timeouts": [
        [
            streams(
                f"Timeout of {ms}ms expired before the position for partition orders-{i} could be determined",
                "org.apache.kafka.common.errors.TimeoutException",
            )
            for ms, i in ((60000, 3), (60000, 11), (30000, 0))
        ],
        [
            spring(
                f'I/O error on POST request for "http://pay.internal/{i}": Read timed out',
                "org.springframework.web.client.ResourceAccessException",
            )
            for i in (17, 18, 19)
        ],
        [
            spring(
                'I/O error on POST request for "http://pay.internal/17": Connection refused',
                "org.springframework.web.client.ResourceAccessException",
            )
        ],
    ],
    "files": [
        [
            spring(f"/data/in/{day}/part-000{i}.json (No such file or directory)", "java.io.FileNotFoundException")
            for day, i in (("2026-11-29", 1), ("2026-11-30", 7))
        ],
        [spring("/data/in (Permission denied)", "java.io.FileNotFoundException")],
        [shared("Offset rejected by client.")],
    ],
    "one text from two writers": [
        [connect("order has no lines", STATE, "TRANSFORMATION")] * 2,
        [connect("order has no lines", STATE, "TASK_PUT")],
        [
            connect('Größe fehlt: {"id": 17}', "com.acme.InvalidOrder"),
            connect('Größe fehlt: {"id": 99, "a": 1}', "com.acme.InvalidOrder"),
        ],
        [
            connect("first line 1\n\tat com.acme.A", "com.acme.InvalidOrder"),
            connect("first line 2\n\tat com.acme.B", "com.acme.InvalidOrder"),
        ],
    ],
}


def headers_of(case: Case) -> Headers:
    """Return the headers of a letter."""
    replaced = {
        b".exception.message": case.text,
        b".exception.class.name": case.error,
        b"__streams.errors.message": case.text,
        b"__streams.errors.exception": case.error,
        b"__dlq.errors.message": case.text,
        b"__rule.exception": case.text,
        b"__rule.name": case.rule,
        b"__rule.mode": case.stage,
        b"__connect.errors.stage": case.stage,
        b"kafka_dlt-exception-message": case.text,
        b"kafka_dlt-exception-cause-fqcn": case.error,
        b"sluicegate.reason": case.error,
    }
    found = tuple(
        (name, next((text.encode() for end, text in replaced.items() if name.endswith(end)), value))
        for name, value in case.writer
    )
    return (*found, (b"sluicegate.rule", case.rule.encode())) if case.rule and case.writer is SLUICEGATE else found
