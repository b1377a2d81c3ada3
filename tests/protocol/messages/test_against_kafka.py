"""Every message schema agrees with Kafka's Java classes, in every version and in both directions, byte for byte."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

from sluicegate.protocol import messages
from sluicegate.protocol.messages import cluster, fetch, handshake, produce, topic_changes, transactions
from sluicegate.protocol.messages.schema import MessageSchema
from tests.oracle.definitions import RandomMessage, message_definition, parse_versions
from tests.oracle.kafka_java import KAFKA_NEWEST, KAFKA_OLD
from tests.oracle.kafka_messages import ask_kafka
from tests.wire import fetch_response, share_messages, unparsed_messages

MODULES = (
    cluster,
    fetch,
    handshake,
    produce,
    topic_changes,
    transactions,
    unparsed_messages,
    fetch_response,
    share_messages,
)
SEEDS = range(12)


def message_schemas() -> list[tuple[str, MessageSchema]]:
    found = [value for module in MODULES for value in vars(module).values() if isinstance(value, MessageSchema)]
    return [(schema.name, schema) for schema in found]


def has_expected_values(parsed: Any, expected: Any) -> bool:
    """Return whether a parsed value has all expected values; it may also have fields with defaults."""
    if isinstance(expected, dict):
        return all(name in parsed and has_expected_values(parsed[name], value) for name, value in expected.items())
    if isinstance(expected, list):
        return len(parsed) == len(expected) and all(map(has_expected_values, parsed, expected))
    return bool(parsed == expected)


def release_of(name: str, version: int) -> str:
    """Return a Kafka release with this version: 3.9.1 for versions that 4.0 removed."""
    newest = parse_versions(message_definition(KAFKA_NEWEST, name)["validVersions"])
    return KAFKA_NEWEST if version in newest else KAFKA_OLD


@pytest.mark.long
@pytest.mark.parametrize("release", [KAFKA_NEWEST, KAFKA_OLD])
def test_messages_round_trip_through_kafka_in_each_version(release: str) -> None:
    cases = [
        (name, schema, version, RandomMessage(release, name, version, seed))
        for name, schema in message_schemas()
        for version in schema.versions
        if release_of(name, version) == release
        for seed in SEEDS
    ]
    assert cases
    written = [schema.build(message.ours, version) for _, schema, version, message in cases]

    results = ask_kafka(release, [(name, v, data) for (name, _, v, _), data in zip(cases, written, strict=True)])

    assert len(results) == len(cases)
    for (name, schema, version, message), ours, result in zip(cases, written, results, strict=True):
        where = f"{name} v{version}"
        assert not isinstance(result, str), f"{where}: Kafka cannot read the bytes: {result}"
        theirs, understood = result
        assert theirs == ours, f"{where}: Kafka writes other bytes"
        assert understood == message.kafka, f"{where}: Kafka reads other values"
        assert has_expected_values(schema.parse(theirs, version), message.ours), (
            f"{where}: our schema reads other values"
        )


def test_every_message_schema_module_is_compared_with_kafka() -> None:
    compared = [schema for _, schema in message_schemas()]

    for found in iter_modules(messages.__path__, f"{messages.__name__}."):
        own = [value for value in vars(import_module(found.name)).values() if isinstance(value, MessageSchema)]
        assert all(any(each is schema for schema in compared) for each in own), f"add {found.name} to MODULES"


def test_every_schema_version_exists_in_a_kafka_release() -> None:
    for name, schema in message_schemas():
        for version in schema.versions:
            release = release_of(name, version)
            assert version in parse_versions(message_definition(release, name)["validVersions"]), f"{name} v{version}"
            assert message_definition(release, name)["flexibleVersions"] in (f"{schema.flexible_since}+", "none")
