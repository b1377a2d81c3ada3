"""A record as it goes to the rules process."""

from typing import Any

from sluicegate.validation.rules.rule import Client, RuledRecord


def fields_of(record: RuledRecord) -> tuple[Any, ...]:
    """All that a rule may read of it."""
    client = record.client
    of_client = (client.address, client.client_id, client.software_name, client.software_version, client.principal)
    return (
        record.topic,
        record.partition,
        record.index,
        record.timestamp,
        record.key,
        record.value,
        record.headers,
        record.key_size,
        record.value_size,
        of_client,
        record.producer_id,
    )


def record_of(fields: tuple[Any, ...]) -> RuledRecord:
    """The record that `fields_of` was given."""
    topic, partition, index, timestamp, key, value, headers, key_size, value_size, of_client, producer_id = fields
    record = RuledRecord(topic, partition, 0, 0, None, None, (), Client(*of_client), producer_id)
    record.fill(index, timestamp, key, value, headers, key_size, value_size)
    return record
