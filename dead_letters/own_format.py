"""Reads letters that sluicegate's own `quarantine` wrote. `DeadLetterHeader` defines their headers."""

from sluicegate.dead_letters.header_values import Values, number_of, text_of
from sluicegate.dead_letters.letter import Headers, Letter, LetterFormat, Obstacle, StoredRecord
from sluicegate.validation.dispositions.quarantine import DeadLetterHeader, librdkafka_headers, unpack_headers

TOPIC = DeadLetterHeader.TOPIC.encode()
_ADDED = frozenset(name.encode() for name in DeadLetterHeader)
_OWN, _REASON = DeadLetterHeader.OWN.encode(), DeadLetterHeader.REASON.encode()
_PARTITION, _TIMESTAMP = DeadLetterHeader.PARTITION.encode(), DeadLetterHeader.TIMESTAMP.encode()
_RULE, _CLIENT_ID = DeadLetterHeader.RULE.encode(), DeadLetterHeader.CLIENT_ID.encode()
_COPY = DeadLetterHeader.COPY.encode()


def read(record: StoredRecord, values: Values) -> Letter | None:
    """Return the letter, or None if it lacks a reason or the original topic's name.

    A record that was quarantined twice has the proxy's headers twice. The last ones describe the last quarantine, and
    the earlier ones count as the record's own headers.
    """
    topic, reason = text_of(values, TOPIC), text_of(values, _REASON)
    if not topic or not reason:
        return None
    own, added = split_headers(record.headers)
    latest = dict(added)
    rules = text_of(latest, _RULE)
    return Letter(
        LetterFormat.SLUICEGATE,
        record,
        topic,
        number_of(latest, _PARTITION),
        None,
        number_of(latest, _TIMESTAMP),
        own,
        reason,
        rules=tuple(rules.split(", ")) if rules else (),
        client=text_of(latest, _CLIENT_ID),
        obstacle=Obstacle.COPY if _COPY in latest else None,
    )


def split_headers(headers: Headers) -> tuple[Headers, Headers]:
    """Split headers into the record's own and those of the last quarantine.

    Headers that were added after the quarantine count as the record's own.
    """
    begins = max((i for i, (name, _) in enumerate(headers) if name == _REASON), default=len(headers))
    own, rest = headers[:begins], headers[begins:]
    if own and rest:
        name, packed = own[-1]
        restored = unpack_headers(packed) if name == _OWN and packed is not None else None
        if restored is not None and _as_librdkafka_writes(restored) == own[:-1]:
            own, rest = tuple(restored), headers[begins - 1 :]
    added = tuple(each for each in rest if each[0] in _ADDED)
    return (*own, *(each for each in rest if each[0] not in _ADDED)), added


def _as_librdkafka_writes(headers: list[tuple[bytes, bytes | None]]) -> Headers:
    return tuple((name.encode(), value) for name, value in librdkafka_headers(headers))
