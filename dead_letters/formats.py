"""Finds the format of a dead letter by its headers, and reads it."""

from collections.abc import Callable

from sluicegate.dead_letters import own_format, spring_format
from sluicegate.dead_letters.header_values import Values
from sluicegate.dead_letters.letter import Letter, StoredRecord
from sluicegate.dead_letters.text_formats import CONFLUENT_RULE, CONNECT, SHARE_GROUP, STREAMS

_Read = Callable[[StoredRecord, Values], Letter | None]
_READERS: dict[bytes, _Read] = {
    own_format.TOPIC: own_format.read,
    spring_format.TOPIC: spring_format.read,
    **{each.topic: each.read for each in (CONNECT, STREAMS, SHARE_GROUP, CONFLUENT_RULE)},
}
"""Readers by the header that contains the original topic, which all formats have."""


def read_letter(record: StoredRecord) -> Letter | None:
    """Return the letter; None if the record is none.

    A record that failed several times has the headers of several writers. The last ones in the record count.
    """
    values = dict(record.headers)
    for name, _ in reversed(record.headers):
        read = _READERS.get(name)
        if read is not None:
            return read(record, values)
    return None
