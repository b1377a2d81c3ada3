"""The request to send to the broker after validation, and the bad records to store in dead-letter topics first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.contents import TakenRecord
from sluicegate.protocol.records.stand_in import stand_in
from sluicegate.proxy.responses.log_starts import LogStarts
from sluicegate.proxy.responses.produce_responses import StandInRequest
from sluicegate.validation.produce.conversion import ConvertedRequest
from sluicegate.validation.validated_request import Place, ValidatedRequest

_NOTHING = memoryview(b"")


class ReleasableMemory(Protocol):
    """Claimed memory, which is released when the last reference to it is dropped."""


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """A batch's bad records, to be stored in the dead-letter topic `topic`.

    `place` is the batch's place in its request, and `source` its own topic. `claim` is the claimed memory of `records`.
    `lacking` explains why the records could not be extracted; it is None if they were. `limit` is the configuration key
    of the limit that prevented the extraction, or None. If `is_copy` is true, the batch itself is forwarded after its
    bad records are stored.
    """

    place: Place
    topic: str
    source: str
    partition: int
    records: Sequence[TakenRecord] = ()
    claim: ReleasableMemory | None = None
    lacking: str | None = None
    limit: str | None = None
    is_copy: bool = False

    @property
    def destination(self) -> str:
        """The dead-letter topic's name, as status and log lines show it."""
        return f"dead-letter topic {self.topic}"


class Dispatch:
    """The request to send to the broker for a validated request.

    `stand_in_request` merges the broker's response; it is None if nothing is rejected. `parts()` returns the parts of a
    changed request. If `parts` is None, the request is forwarded unchanged. `dead_letters` are stored before the
    request is forwarded. `conversion` contains the converted request if the client's own request has an older version.
    Everything else refers to the converted one.
    """

    def __init__(
        self,
        validated: ValidatedRequest,
        stand_in_request: StandInRequest | None,
        parts: Callable[[], list[bytes | memoryview]] | None,
    ) -> None:
        self.validated = validated
        self.stand_in_request = stand_in_request
        self.parts = parts
        self.dead_letters: Sequence[DeadLetters] = ()
        self.conversion: ConvertedRequest | None = None


def dispatch_of(
    request: ProduceRequest,
    validated: ValidatedRequest,
    log_starts: LogStarts,
    now_ms: int,
    give_way: Callable[[], None],
) -> Dispatch:
    """Return the dispatch for a verdict that rejects batches or requires copies of bad records.

    `give_way` yields to other threads.
    """
    stand_in_request = StandInRequest(request, validated, log_starts, now_ms, give_way)
    parts = partial(_parts_of, request, validated, stand_in_request)
    if not stand_in_request.may_respond_alone and not stand_in_request.may_withhold:
        made = parts(give_way)
        return Dispatch(validated, stand_in_request, lambda: made)
    return Dispatch(validated, stand_in_request, partial(parts, _go_on))


def _parts_of(
    request: ProduceRequest, validated: ValidatedRequest, stand_in_request: StandInRequest, give_way: Callable[[], None]
) -> list[bytes | memoryview]:
    """Return the request with its changed batches, and with a stand-in for each batch that is rejected or withheld."""
    replaced = validated.replacements()
    for place in (*validated.rejected, *stand_in_request.withheld):
        unusual = stand_in_request.stand_ins.get(place)
        replaced[place] = stand_in(request.records(*place) or _NOTHING) if unusual is None else unusual
        give_way()
    return request.with_records(replaced)


def _go_on() -> None:
    """Do nothing, because a request with few partitions delays no other thread."""
