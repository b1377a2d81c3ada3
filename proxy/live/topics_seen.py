"""The topics that producers wrote to lately, with or without violations."""

from collections import OrderedDict
from collections.abc import Iterable

from sluicegate.proxy.live.live_state import TopicState
from sluicegate.proxy.reporting.bounded_text import cut

MAX_TOPICS = 1000


class TopicsSeen:
    """When each topic was written to first and last. The one that was written to longest ago makes room for a new one.

    The slow path sees each topic that is in use every 5 s (`sluicegate.validation.ordinary`), so `last_ms` is as exact.
    """

    def __init__(self) -> None:
        self._times: OrderedDict[str, tuple[int, int]] = OrderedDict()

    def add(self, topics: Iterable[str], now_ms: int) -> None:
        """Note topics of a request that was validated."""
        for topic in topics:
            name = cut(topic)
            first, _ = self._times.get(name, (now_ms, now_ms))
            self._times[name] = first, now_ms
            self._times.move_to_end(name)
            if len(self._times) > MAX_TOPICS:
                self._times.popitem(last=False)

    def state(self, after_ms: int) -> list[TopicState]:
        """Return the topics that were written to after `after_ms` (Unix time), the newest last."""
        return [
            {"name": name, "first_ms": first, "last_ms": last}
            for name, (first, last) in list(self._times.items())
            if last > after_ms
        ]
