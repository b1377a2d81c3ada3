"""The latest stored time of each partition, for topics whose bad times become that (`fix: previous`).

KIP-93's UsePreviousTimeOnInvalidTimestamp does that where records are read; what Kafka Streams calls partition time.
"""

from collections import OrderedDict
from collections.abc import Container

_MOST_PARTITIONS = 20_000

Partition = tuple[str, int]
"""A topic and a partition of it."""


class PreviousUnderWay(Exception):
    """The time that a record is to get depends on a batch that was sent and not responded to yet."""


class PreviousTimes:
    """Of the partitions that were written to last; of what one process has seen stored since its start.

    May be asked from any thread; one thread notes what is stored.
    """

    def __init__(self, most_partitions: int = _MOST_PARTITIONS) -> None:
        self._most = most_partitions
        self._times: OrderedDict[Partition, int] = OrderedDict()

    def of(self, topic: str, partition: int) -> int | None:
        """The time (ms); None: none is known."""
        return self._times.get((topic, partition))

    def stored(self, topic: str, partition: int, time: int) -> None:
        """A batch whose latest time (ms) this is has been stored."""
        place = (topic, partition)
        self._times[place] = max(self._times.get(place, time), time)
        self._times.move_to_end(place)
        if len(self._times) > self._most:
            self._times.popitem(last=False)


class PreviousTimesInOrder:
    """The same for the batches of one connection, which a broker stores in their order.

    `under_way`: the partitions of batches that were sent and not responded to.
    """

    def __init__(self, known: PreviousTimes, under_way: Container[Partition]) -> None:
        self._known = known
        self._under_way = under_way

    def of(self, topic: str, partition: int) -> int | None:
        """The time (ms); None: none is known. Raises PreviousUnderWay."""
        if (topic, partition) in self._under_way:
            raise PreviousUnderWay
        return self._known.of(topic, partition)
