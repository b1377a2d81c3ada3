"""Records the latest stored time of each partition, which replaces bad times (`fix: previous`).

KIP-93's UsePreviousTimeOnInvalidTimestamp does the same for consumers; Kafka Streams calls it partition time.
"""

from collections import OrderedDict
from collections.abc import Container

_MOST_PARTITIONS = 20_000

Partition = tuple[str, int]
"""A topic and one of its partitions."""


class PreviousTimeInFlight(Exception):
    """Raised if the new time of a record depends on an in-flight batch."""


class PreviousTimes:
    """The latest stored times that this process knows, for the partitions with the most recent writes.

    Any thread may read; one thread records stored times.
    """

    def __init__(self, most_partitions: int = _MOST_PARTITIONS) -> None:
        self._most = most_partitions
        self._times: OrderedDict[Partition, int] = OrderedDict()

    def time_of(self, topic: str, partition: int) -> int | None:
        """Return the time (ms); None if it is unknown."""
        return self._times.get((topic, partition))

    def note_stored(self, topic: str, partition: int, time: int) -> None:
        """Record the latest time (ms) of a stored batch."""
        place = (topic, partition)
        self._times[place] = max(self._times.get(place, time), time)
        self._times.move_to_end(place)
        if len(self._times) > self._most:
            self._times.popitem(last=False)


class PreviousTimesInOrder:
    """The latest times for one connection, whose batches a broker stores in order.

    `under_way` has the partitions of in-flight batches.
    """

    def __init__(self, known: PreviousTimes, under_way: Container[Partition]) -> None:
        self._known = known
        self._under_way = under_way

    def time_of(self, topic: str, partition: int) -> int | None:
        """Return the time (ms); None if it is unknown. Raises PreviousTimeInFlight."""
        if (topic, partition) in self._under_way:
            raise PreviousTimeInFlight
        return self._known.time_of(topic, partition)
