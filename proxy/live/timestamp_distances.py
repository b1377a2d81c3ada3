"""Counts batches by the distance of their timestamps from now, separately for valid and for rejected batches.

The fast path counts its valid batches natively (`sluicegate.validation.ordinary`). This module counts the slow path's
valid batches, and rejected batches. A batch is counted by its base timestamp if that is in the past, and by its latest
timestamp if that is in the future.
"""

from array import array
from typing import TYPE_CHECKING

from sluicegate.proxy.live.live_state import Distances
from sluicegate.proxy.reporting.events.violation_event import ViolationEvent
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome
from sluicegate.validation.units import DISTANCE_STEPS, distance_step
from sluicegate.validation.verdict import TIMED

if TYPE_CHECKING:
    from sluicegate.validation.ordinary import OrdinaryRequests


_ROW = bytes(8 * DISTANCE_STEPS)
_LONGEST_MS = 2**63 - 1


class TimestampDistances:
    """Counts batches by distance since the start."""

    def __init__(self, ordinary: "OrdinaryRequests | None") -> None:
        self._ordinary = ordinary
        self._behind, self._ahead, self._rejected_behind, self._rejected_ahead = (array("q", _ROW) for _ in range(4))

    def settled(self, batch: BatchOutcome) -> None:
        """Count a batch that the slow path found valid."""
        if batch.ahead_ms is not None and batch.age_ms is not None:
            self._behind[_step_of(batch.age_ms)] += 1
            self._ahead[_step_of(batch.ahead_ms)] += 1

    def rejected(self, violation: ViolationEvent) -> None:
        """Count a batch by its first bad record, if the violation concerns the timestamp."""
        records = violation.bad_records
        if not records or records[0].reason not in TIMED:
            return
        away = records[0].timestamp - violation.basis.now_ms
        self._rejected_behind[_step_of(-away)] += 1
        self._rejected_ahead[_step_of(away)] += 1

    def state(self) -> Distances:
        """Return the counts that are not zero. Thread-safe."""
        behind, ahead = array("q", self._behind), array("q", self._ahead)
        if self._ordinary is not None:
            for row, more in zip((behind, ahead), self._ordinary.distance_counts(), strict=True):
                for step, count in enumerate(memoryview(more).cast("q")):
                    row[step] += count
        return {
            "behind": _shown(behind),
            "ahead": _shown(ahead),
            "rejected_behind": _shown(self._rejected_behind),
            "rejected_ahead": _shown(self._rejected_ahead),
        }


def _step_of(away_ms: int) -> int:
    return 0 if away_ms <= 0 else distance_step(min(away_ms, _LONGEST_MS))


def _shown(row: "array[int]") -> dict[str, int]:
    return {str(step): count for step, count in enumerate(row) if count}
