"""Bad records on their way to another topic: what is kept of one rejected batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sluicegate.protocol.records.contents import TakenRecord
from sluicegate.validation.produce import Place


class Claim(Protocol):
    """Memory that is counted, and given back when nobody holds this any more."""


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """What is kept of the batch at `place` of a request. `topic`: the dead-letter topic; `source`: the batch's own.

    `claim` is the memory of `records`. `lacking`: why they could not even be taken out; None: they were.
    `limit`: the key of the limit where that is why.
    """

    place: Place
    topic: str
    source: str
    partition: int
    records: Sequence[TakenRecord] = ()
    claim: Claim | None = None
    lacking: str | None = None
    limit: str | None = None
