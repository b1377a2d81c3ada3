"""Extracts a validated request's bad records for dead-letter topics (`quarantine`).

Extraction runs in a validating thread. The bad records of all connections share one memory limit until they are stored.
"""

import threading
from collections.abc import Callable, Mapping, Sequence

import structlog

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.contents import TooMuch
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.validation.dispositions.quarantine import QuarantineMismatch, bad_records_of, can_be_quarantined
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.validated_request import Place, ValidatedRequest, ValidationBasis
from sluicegate.validation.validator import Submission
from sluicegate.validation.verdict import Finding

QUARANTINED_BYTES = "limits.max_quarantined_bytes"


class QuarantineMemory:
    """Memory of `total_bytes` for bad records. Any thread may claim a part of it.

    A claim ends when its last reference is dropped, so no code has to release it when a client, a broker or a request
    ends.
    """

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self._taken = 0
        # reentrant, because the garbage collector may end a claim while the lock is held
        self._lock = threading.RLock()

    @property
    def free_bytes(self) -> int:
        """The number of bytes that may be claimed now."""
        return self.total_bytes - self._taken

    def claim(self, size: int) -> "MemoryClaim | None":
        """Claim `size` bytes. Return None if fewer are free."""
        with self._lock:
            if size > self.free_bytes:
                return None
            self._taken += size
        return MemoryClaim(self, size)

    def release(self, size: int) -> None:
        """Free the bytes of a claim that has ended."""
        with self._lock:
            self._taken -= size


class MemoryClaim:
    """A claim of `size` bytes of quarantine memory, which lasts as long as this object exists."""

    __slots__ = ("_memory", "_size")

    def __init__(self, memory: QuarantineMemory, size: int) -> None:
        self._memory = memory
        self._size = size

    def __del__(self) -> None:
        self._memory.release(self._size)


def extract_bad_records(
    request: ProduceRequest,
    validated: ValidatedRequest,
    names: Mapping[bytes, str],
    limits: ValidationLimits,
    decompressor: Decompressor,
    give_way: Callable[[], None],
    memory: QuarantineMemory,
) -> Sequence[DeadLetters]:
    """Return an entry for each batch whose topic has a dead-letter topic, even if its records could not be extracted.

    Raises Abandoned.
    """
    # Validation has found that the batches are within the limits. Extraction gets its own budget.
    budget = DecompressionBudget(limits.max_decompressed_bytes, 0, give_way)
    found = []
    for place, found_bad in validated.to_quarantine.items():
        topic = request.topics[place[0]]
        name = topic.name_by(names) or ""
        partition = topic.partitions[place[1]].index
        submission = Submission(name, partition, request.records(*place), request.version)
        if can_be_quarantined(submission):
            found.append(
                _extracted(place, submission, found_bad, validated.basis[place], limits, decompressor, budget, memory)
            )
    return found


def _extracted(
    place: Place,
    submission: Submission,
    findings: tuple[Finding, ...],
    basis: ValidationBasis,
    limits: ValidationLimits,
    decompressor: Decompressor,
    budget: DecompressionBudget,
    memory: QuarantineMemory,
) -> DeadLetters:
    dead_letters = basis.policy.dead_letters
    assert dead_letters is not None
    where = (place, dead_letters, submission.topic, submission.partition)
    is_copy = basis.policy.mode is Mode.OBSERVE
    try:
        taken = bad_records_of(submission, findings, basis, limits, decompressor, budget, memory.free_bytes)
        claim = memory.claim(taken.size)
    except TooMuch:
        claim = None
    except QuarantineMismatch as error:
        structlog.get_logger("sluicegate").error("internal error: bad records were not found again", reason=str(error))
        return DeadLetters(*where, lacking="internal error in the proxy; see its log", is_copy=is_copy)
    if claim is None:
        lacking = f"they need more memory than {QUARANTINED_BYTES} has free ({memory.total_bytes})"
        return DeadLetters(*where, lacking=lacking, limit=QUARANTINED_BYTES, is_copy=is_copy)
    return DeadLetters(*where, taken.records, claim, is_copy=is_copy)
