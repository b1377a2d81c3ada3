"""Defines simple built-in rules for records.

A key or value is required, has a size, or is UTF-8; a batch has a maximum number of records; timestamps are in order.
"""

from collections import OrderedDict
from dataclasses import dataclass

from sluicegate.validation.rules.native.questions import BytesQuestion, OrdinaryQuestions, native_check_about
from sluicegate.validation.rules.rule import Part, RuledRecord, Side
from sluicegate.validation.rules.simple_rule import SimpleRule

_MOST_PRODUCERS = 20_000
_NO_TIME = -1
_BYTES_OF_STEP = 100  # decoding takes less than a nanosecond per byte


@dataclass(frozen=True, slots=True)
class Required(SimpleRule):
    """A rule that rejects null. An empty key or value passes."""

    side: Side

    @property
    def parts(self) -> Part:
        """Return no parts, because sizes are always available."""
        return Part.NONE

    def ordinary(self) -> OrdinaryQuestions:
        """Return the whole rule."""
        return native_check_about(self.side, BytesQuestion(required=True))

    def fault(self, record: RuledRecord) -> str | None:
        """Return a message if the key or value is null, otherwise None."""
        return f"the {self.side.value} is null; send a {self.side.value}" if self.side.size_of(record) < 0 else None


def _bytes(size: int) -> str:
    return "1 byte" if size == 1 else f"{size} bytes"


@dataclass(frozen=True, slots=True)
class Size(SimpleRule):
    """A rule that requires a size from `least` to `most` bytes, inclusive. Null passes (see `Required`)."""

    side: Side
    least: int = 0
    most: int | None = None

    @property
    def parts(self) -> Part:
        """Return no parts, because sizes are always available."""
        return Part.NONE

    def ordinary(self) -> OrdinaryQuestions:
        """Return the whole rule."""
        most = BytesQuestion().most if self.most is None else self.most
        return native_check_about(self.side, BytesQuestion(least=self.least, most=most))

    def fault(self, record: RuledRecord) -> str | None:
        """Return a message if the key or value is too small or too large, otherwise None."""
        size = self.side.size_of(record)
        if 0 <= size < self.least:
            return f"the {self.side.value} has {_bytes(size)}; at least {self.least} are required"
        if self.most is not None and size > self.most:
            return f"the {self.side.value} has {_bytes(size)}; at most {self.most} are allowed"
        return None


@dataclass(frozen=True, slots=True)
class Utf8(SimpleRule):
    """A rule that requires UTF-8 as RFC 3629 defines it, without overlong forms and surrogates. Null passes."""

    side: Side

    @property
    def parts(self) -> Part:
        """Return the part that contains the bytes."""
        return self.side.part

    def ordinary(self) -> OrdinaryQuestions:
        """Return the whole rule."""
        return native_check_about(self.side, BytesQuestion(is_text=True))

    def fault(self, record: RuledRecord) -> str | None:
        """Return a message with the position of the first byte that is not UTF-8, or None if all bytes are."""
        data = self.side.bytes_of(record)
        if data is None:
            return None
        record.budget.spend(len(data) // _BYTES_OF_STEP)
        if data.isascii():
            return None
        try:
            data.decode()
        except UnicodeDecodeError as error:
            return f"the {self.side.value} is invalid UTF-8 at byte {error.start}; encode it as UTF-8"
        return None


@dataclass(frozen=True, slots=True)
class MostRecords(SimpleRule):
    """A rule that allows at most `most` records per batch.

    It reports one violation, for the first record over the limit.
    """

    most: int

    @property
    def parts(self) -> Part:
        """Return no parts, because a record's position is always available."""
        return Part.NONE

    def ordinary(self) -> OrdinaryQuestions:
        """Return the whole rule."""
        return OrdinaryQuestions(most_records=self.most)

    def fault(self, record: RuledRecord) -> str | None:
        """Return a message for the first record over the limit, otherwise None."""
        if record.index != self.most:
            return None
        return f"the batch has more than {self.most} records; have the producer send smaller batches (batch.size)"


class MonotonicTime(SimpleRule):
    """A rule that requires a producer's timestamps in a partition never to decrease.

    It is only observed, because retries repeat timestamps. The rule stores the latest timestamp per producer and
    partition, for those with the most recent records. An idempotent producer is identified by its producer id, and any
    other by its client id and address. The result depends on earlier records, so a batch should be validated only once.
    `is_slow` therefore keeps the rule off the event loop, where validations may be restarted. If a schema must be
    fetched in the middle of a batch, the batch is still validated twice, and timestamps may be reported although they
    are in order.
    """

    is_slow = True  # ensures that each batch is validated once

    def __init__(self, most_producers: int = _MOST_PRODUCERS) -> None:
        self._most = most_producers
        self._latest: OrderedDict[tuple[object, ...], int] = OrderedDict()

    @property
    def parts(self) -> Part:
        """Return no parts, because a record's timestamp is always available."""
        return Part.NONE

    def fault(self, record: RuledRecord) -> str | None:
        """Return a message if the timestamp is before the producer's latest, otherwise None."""
        time = record.timestamp
        if time == _NO_TIME:
            return None
        producer = (record.topic, record.partition, record.producer_id)
        sender = record.client.client_id, record.client.address
        key = producer if record.producer_id >= 0 else (*producer, hash(sender))  # a client id may have 32 kB
        latest = self._latest.get(key)
        if latest is not None and time < latest:
            return f"its timestamp is {latest - time} ms before that of an earlier record of the same producer"
        self._latest[key] = time
        self._latest.move_to_end(key)
        if latest is None and len(self._latest) > self._most:
            self._latest.popitem(last=False)
        return None
