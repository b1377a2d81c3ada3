"""The names of the headers that a record in a dead-letter topic has behind its own."""

from enum import StrEnum


class DeadLetterHeader(StrEnum):
    """In the order in which they stand. `OWN` is there only where the name of a header of the record's own is none that
    librdkafka can write: all of them as they stood in the record. What is not known of a client has none.
    """

    OWN = "sluicegate.headers"
    REASON = "sluicegate.reason"
    TOPIC = "sluicegate.topic"
    PARTITION = "sluicegate.partition"
    INDEX = "sluicegate.index"
    TIMESTAMP = "sluicegate.timestamp"
    RULE = "sluicegate.rule"
    CLIENT_ID = "sluicegate.client.id"
    SOFTWARE = "sluicegate.software"
    PRINCIPAL = "sluicegate.principal"
    ADDRESS = "sluicegate.address"
    VERSION = "sluicegate.version"
