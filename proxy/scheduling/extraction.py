"""Takes the bad records out of a validated request whose topics have them kept (`quarantine`). For a validating
thread.
"""

from collections.abc import Callable, Mapping, Sequence

import structlog

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import Allowance
from sluicegate.protocol.records.contents import TooMuch
from sluicegate.proxy.responses.dead_letters import DeadLetters
from sluicegate.proxy.scheduling.quarantine_memory import QuarantineRoom
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.produce import Place, ValidatedRequest
from sluicegate.validation.quarantine import NotFoundAgain, bad_records_of, can_be_quarantined
from sluicegate.validation.validator import Submission

QUARANTINED_BYTES = "limits.max_quarantined_bytes"


def take_out(
    request: ProduceRequest,
    validated: ValidatedRequest,
    names: Mapping[bytes, str],
    limits: ValidationLimits,
    decompressor: Decompressor,
    give_way: Callable[[], None],
    room: QuarantineRoom,
) -> Sequence[DeadLetters]:
    """One for each batch whose bad records are to be kept, also where they cannot be. Raises Abandoned."""
    # The first pass has found it within bounds; what it spent is not there for a second.
    allowance = Allowance(limits.max_decompressed_bytes, 0, give_way)
    found = []
    for place in validated.to_quarantine:
        topic = request.topics[place[0]]
        name = topic.name if topic.name is not None else names.get(topic.topic_id or b"", "")
        partition = topic.partitions[place[1]].index
        submission = Submission(name, partition, request.records(*place), request.version)
        if can_be_quarantined(submission):
            found.append(_taken(place, submission, validated, limits, decompressor, allowance, room))
    return found


def _taken(
    place: Place,
    submission: Submission,
    validated: ValidatedRequest,
    limits: ValidationLimits,
    decompressor: Decompressor,
    allowance: Allowance,
    room: QuarantineRoom,
) -> DeadLetters:
    rejected, held_to = validated.rejected[place], validated.held_to[place]
    dead_letters = held_to.policy.dead_letters
    assert dead_letters is not None
    where = (place, dead_letters, submission.topic, submission.partition)
    try:
        taken = bad_records_of(submission, rejected, held_to, limits, decompressor, allowance, room.free_bytes)
        claim = room.claim(taken.size)
    except TooMuch:
        claim = None
    except NotFoundAgain as error:
        structlog.get_logger("sluicegate").error("our fault: bad records were not found again", reason=str(error))
        return DeadLetters(*where, lacking="a fault of the proxy's own, which its log tells of")
    if claim is None:
        lacking = f"with what waits already they take more memory than {QUARANTINED_BYTES} ({room.total_bytes})"
        return DeadLetters(*where, lacking=lacking, limit=QUARANTINED_BYTES)
    return DeadLetters(*where, taken.records, claim)
