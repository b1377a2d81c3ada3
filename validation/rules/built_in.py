"""The small built-in rules: a key or value is required, has a size, or is UTF-8; the size of a batch; the order of
times.
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
    """Rejects null. An empty key or value passes."""

    side: Side

    @property
    def parts(self) -> Part:
        """Return no parts, because sizes are always known."""
        return Part.NONE

    def ordinary(self) -> OrdinaryQuestions:
        """Return the whole rule."""
        return native_check_about(self.side, BytesQuestion(required=True))

    def fault(self, record: RuledRecord) -> str | None:
        """Return a text if the key or value is null."""
        return f"the {self.side.value} is null; send a {self.side.value}" if self.side.size_of(record) < 0 else None


def _bytes(size: int) -> str:
    return "1 byte" if size == 1 else f"{size} bytes"


@dataclass(frozen=True, slots=True)
class Size(SimpleRule):
    """Requires a size from `least` to `most` bytes, inclusive. Null passes (see `Required`)."""

    side: Side
    least: int = 0
    most: int | None = None

    @property
    def parts(self) -> Part:
        """Return no parts, because sizes are always known."""
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
    """Requires UTF-8 by RFC 3629, without overlong forms and surrogates. Null passes."""

    side: Side

    @property
    def parts(self) -> Part:
        """Return the part with the bytes."""
        return self.side.part

    def ordinary(self) -> OrdinaryQuestions:
        """Return the whole rule."""
        return native_check_about(self.side, BytesQuestion(is_text=True))

    def fault(self, record: RuledRecord) -> str | None:
        """Return a text with the position of the first byte that is not UTF-8; None if all bytes are."""
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
    """Requires at most `most` records per batch. Reports a violation once, for the first record beyond the limit."""

    most: int

    @property
    def parts(self) -> Part:
        """Return no parts, because a record's position is always known."""
        return Part.NONE

    def ordinary(self) -> OrdinaryQuestions:
        """Return the whole rule."""
        return OrdinaryQuestions(most_records=self.most)

    def fault(self, record: RuledRecord) -> str | None:
        """Return a text for the first record beyond the limit."""
        if record.index != self.most:
            return None
        return f"the batch has more than {self.most} records; have the producer send smaller batches (batch.size)"


class MonotonicTime(SimpleRule):
    """Requires that times never decrease, for each producer and partition. Only observed, because a retry repeats
    times.

    Stores the latest time of the producers and partitions with the most recent records. An idempotent producer is
    identified by its id, any other by its client id and address. The result depends on earlier records, so a batch
    should be validated once: `is_slow` keeps the rule off the event loop, where a validation may start again. If a
    schema must be fetched in the middle of a batch, the batch is validated twice, and times in the right order may be
    reported.
    """

    is_slow = True  # each batch is validated once

    def __init__(self, most_producers: int = _MOST_PRODUCERS) -> None:
        self._most = most_producers
        self._latest: OrderedDict[tuple[object, ...], int] = OrderedDict()

    @property
    def parts(self) -> Part:
        """Return no parts, because a record's time is always known."""
        return Part.NONE

    def fault(self, record: RuledRecord) -> str | None:
        """Return a text if the time is before the producer's latest."""
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
