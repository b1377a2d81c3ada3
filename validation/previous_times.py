"""The latest good time that each partition has had, for topics whose bad times become that (`fix`).

KIP-93's UsePreviousTimeOnInvalidTimestamp does that where records are read; what Kafka Streams calls partition time.
"""

from collections import OrderedDict

_MOST_PARTITIONS = 20_000


class PreviousTimes:
    """Of the partitions that were written to last; of what one process has seen since its start."""

    def __init__(self, most_partitions: int = _MOST_PARTITIONS) -> None:
        self._most = most_partitions
        self._times: OrderedDict[tuple[str, int], int] = OrderedDict()

    def of(self, topic: str, partition: int) -> int | None:
        """The time (ms); None: none is known."""
        return self._times.get((topic, partition))

    def saw(self, topic: str, partition: int, time: int) -> None:
        """A good batch whose latest time (ms) this is."""
        place = (topic, partition)
        before = self._times.pop(place, time)
        self._times[place] = max(before, time)
        if len(self._times) > self._most:
            self._times.popitem(last=False)
