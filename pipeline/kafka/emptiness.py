"""What an empty answer of a broker means, short of the end of what was asked for.

It may be the end of a compacted log, whose rest has been removed. It may be a leader that does not know its high
watermark or last stable offset yet. And it may be a read from remote storage (KIP-405) that outlasts the broker's
`remote.fetch.max.wait.ms`: then it answers with no error, the high watermark, and no records, and the same request may
have its records a moment later. What the leader holds itself it never leaves out.
"""

import time

from sluicegate.pipeline.kafka.cluster import Cluster, OffsetRange, TopicTrouble
from sluicegate.protocol.messages.list_offsets import LATEST

_PATIENCE_SECONDS = 60.0


class RemoteSilence(TopicTrouble):
    """Records in remote storage do not come; the text says which, and what to do."""


class DataLoss(Exception):
    """Offsets that were asked for are gone: deleted at the log's start, or cut off at its end. `found` is the next that
    is there, or the end of what was asked for.
    """

    def __init__(self, wanted: OffsetRange, offset: int, found: int) -> None:
        super().__init__(f"{wanted.of}: offsets {offset} to {found - 1} are gone")
        self.first, self.found = offset, found


class EmptyResponses:
    """Those in a row at one offset; each is told of by `is_the_end`, progress by `end`."""

    def __init__(self, cluster: Cluster, wanted: OffsetRange, committed: bool) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._committed = committed
        self._since: float | None = None
        self._held_here = False

    def end(self) -> None:
        """Something came."""
        self._since, self._held_here = None, False

    def is_the_end(self, offset: int, high_watermark: int) -> bool:
        """Whether nothing is left from `offset` to the end of what is wanted; if not, ask again.

        Raises DataLoss for a log that was cut off, and RemoteSilence, when patience ends.
        """
        begun = self._since is None
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        there = high_watermark >= self._wanted.end and self._readable_to() >= self._wanted.end
        if there and self._held_here:
            return True  # asked of the same leader once more, since it was seen to hold this offset itself
        local = self._cluster.local_start(self._wanted.of)
        self._held_here = there and local <= offset
        if begun or now - self._since < _PATIENCE_SECONDS:
            return False
        if not there:
            raise DataLoss(self._wanted, offset, self._wanted.end)
        raise RemoteSilence(
            f"{self._wanted.of}: for {_PATIENCE_SECONDS:.0f} s the broker has answered nothing at offset {offset}, and "
            f"the log goes on; what lies below {local} is in its remote storage, whose reads seem to outlast the "
            "broker's remote.fetch.max.wait.ms: raise that, or see to the remote storage, and start again"
        )

    def _readable_to(self) -> int:
        return self._cluster.offsets([self._wanted.of], LATEST, self._committed)[self._wanted.of]
