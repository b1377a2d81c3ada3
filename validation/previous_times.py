"""Records each partition's latest stored timestamp, which replaces bad timestamps (`fix: previous`).

KIP-93's UsePreviousTimeOnInvalidTimestamp does the same for consumers. Kafka Streams calls this partition time.
"""

from collections import OrderedDict
from collections.abc import Container

_MOST_PARTITIONS = 20_000

Partition = tuple[str, int]
"""A topic and the number of one of its partitions."""


class PreviousTimeInFlight(Exception):
    """Raised if a record's new timestamp depends on an in-flight batch."""


class PreviousTimes:
    """The latest stored timestamps that this process knows, for the most recently written partitions.

    Any thread may read them; one thread records them.
    """

    def __init__(self, most_partitions: int = _MOST_PARTITIONS) -> None:
        self._most = most_partitions
        self._times: OrderedDict[Partition, int] = OrderedDict()

    def time_of(self, topic: str, partition: int) -> int | None:
        """Return the timestamp (ms), or None if it is unknown."""
        return self._times.get((topic, partition))

    def note_stored(self, topic: str, partition: int, time: int) -> None:
        """Record the latest timestamp (ms) in a stored batch."""
        place = (topic, partition)
        self._times[place] = max(self._times.get(place, time), time)
        self._times.move_to_end(place)
        if len(self._times) > self._most:
            self._times.popitem(last=False)


class PreviousTimesInOrder:
    """The latest timestamps for one connection. A broker stores its batches in order.

    `under_way` contains the partitions with in-flight batches.
    """

    def __init__(self, known: PreviousTimes, under_way: Container[Partition]) -> None:
        self._known = known
        self._under_way = under_way

    def time_of(self, topic: str, partition: int) -> int | None:
        """Return the timestamp (ms), or None if it is unknown. Raises PreviousTimeInFlight."""
        if (topic, partition) in self._under_way:
            raise PreviousTimeInFlight
        return self._known.time_of(topic, partition)
