"""Times do not go back, for each producer and partition. Only ever observed: a producer's retry goes back too."""

from collections import OrderedDict

from sluicegate.validation.rules.rule import CONSTANT_STEPS, Part, RuledRecord

_MOST_PRODUCERS = 20_000
_NO_TIME = -1


class MonotonicTime:
    """Remembers the latest time of the producers and partitions that were written by and to last.

    An idempotent producer is known by its id, any other by its client id and address. What it says depends on what came
    before, so a batch should be validated once: `is_slow` keeps it off the event loop, where validations are begun
    anew.
    A batch in whose middle a schema has to be looked up is validated twice, and its times may be told that were in
    order.
    """

    def __init__(self, most_producers: int = _MOST_PRODUCERS) -> None:
        self._most = most_producers
        self._latest: OrderedDict[tuple[object, ...], int] = OrderedDict()

    @property
    def needs(self) -> Part:
        """A record's time is always known."""
        return Part.NONE

    @property
    def is_slow(self) -> bool:
        """See the class."""
        return True

    def steps(self, _record: RuledRecord) -> int:
        """A look-up."""
        return CONSTANT_STEPS

    def complaint(self, record: RuledRecord) -> str | None:
        """A time that is before the latest."""
        time = record.timestamp
        if time == _NO_TIME:
            return None
        who = (record.topic, record.partition, record.producer_id)
        place = who if record.producer_id >= 0 else (*who, record.client.client_id, record.client.address)
        latest = self._latest.get(place)
        if latest is not None and time < latest:
            return f"its time is {latest - time} ms before that of a record that the same producer has sent before it"
        self._latest[place] = time
        self._latest.move_to_end(place)
        if latest is None and len(self._latest) > self._most:
            self._latest.popitem(last=False)
        return None

    def explanation(self, _record: RuledRecord) -> str | None:
        """Its complaint is all of it."""
        return None
