"""The outcome of a batch, and of its request: what all reports are made from."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from sluicegate.protocol.errors import RETRIABLE_CODES, ErrorCode
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.validation.broker_meters import BrokerMeter
from sluicegate.validation.outcome import Change, Copies, Outcome, Waiver
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.validated_request import ValidationBasis
from sluicegate.validation.verdict import Finding

# Codes of batches that the broker has stored.
_STORED = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})


def outcome_of(code: int) -> Outcome:
    """Return the outcome of a batch to which a broker responds with this error code."""
    if code in _STORED:
        return Outcome.ACCEPTED
    return Outcome.RESEND if code in RETRIABLE_CODES else Outcome.REJECTED


_NO_MARKS: Mapping[BrokerMeter, int] = MappingProxyType({})


class ReportedFinding(NamedTuple):
    """One finding about a batch. `mode`: what the policy asks for. `finding` lists only the bad records that events may
    show. `is_further`: another finding about the batch comes before it. `is_listed`: the client's response names each
    bad record. `marks`: how a broker's own meters count the batch.
    """

    mode: Mode
    finding: Finding
    copies: Copies | None = None
    is_further: bool = False
    is_listed: bool = True
    marks: Mapping[BrokerMeter, int] = _NO_MARKS


class BatchOutcome(NamedTuple):
    """What became of one batch.

    `topic` None: the name of its id is not known. `records`: the batch's own count; `size` in bytes. `error`: the code
    that the client got, None if it got none. `findings`: what validation found, also if the batch is forwarded.
    `waiver`: why it was not validated, or not enforced. `basis` None: it was not validated, or nothing was found.

    Of a batch that validation accepts: `ahead_ms` is how far its latest time is after the proxy's clock, `age_ms` how
    far its base timestamp is before it (None without one); both are None for other batches. `masked`: how many records
    each policy for sensitive fields has changed, and `masked_records` together. `rehearsed`: how many records each
    rehearsed bound would reject, in the policy's order. `unreadable`: the parts of a forwarded batch that some clients
    cannot read.
    """

    topic: str | None
    topic_id: bytes | None
    partition: int
    records: int
    size: int
    outcome: Outcome = Outcome.UNKNOWN
    error: int | None = None
    findings: tuple[ReportedFinding, ...] = ()
    changes: tuple[Change, ...] = ()
    waiver: Waiver | None = None
    basis: ValidationBasis | None = None
    ahead_ms: int | None = None
    age_ms: int | None = None
    masked: tuple[tuple[str, int], ...] = ()
    masked_records: int = 0
    rehearsed: tuple[int, ...] = ()
    unreadable: Finding | None = None

    @property
    def is_validated(self) -> bool:
        """Whether validation has judged the batch, enforced or not."""
        return self.ahead_ms is not None or bool(self.findings)

    @property
    def is_reported(self) -> bool:
        """Whether anything about the batch is reported beside its numbers."""
        return self.basis is not None


class RequestOutcome(NamedTuple):
    """What became of the batches of one Produce request of `size` bytes.

    `sent_ms`: when it was forwarded, or the proxy responded (since the epoch). `proxy_seconds`: from its complete
    arrival until then; `upstream_seconds`: from then until the broker's response, None without one.
    """

    client: ClientDetails
    acks: int
    version: int
    size: int
    topics: tuple[str | None, ...]
    batches: tuple[BatchOutcome, ...]
    sent_ms: int
    proxy_seconds: float
    upstream_seconds: float | None
