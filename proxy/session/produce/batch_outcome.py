"""The outcomes of batches and of their request, from which all reports are created."""

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

# The error codes for batches that the broker has stored.
_STORED = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})


def outcome_of(code: int) -> Outcome:
    """Return the outcome of a batch to which a broker responds with this error code."""
    if code in _STORED:
        return Outcome.ACCEPTED
    return Outcome.RESEND if code in RETRIABLE_CODES else Outcome.REJECTED


_NO_MARKS: Mapping[BrokerMeter, int] = MappingProxyType({})


class ReportedFinding(NamedTuple):
    """One finding about a batch.

    `mode` is the policy's mode. `finding` lists only the bad records that events may show. `is_further` is true if
    another finding about the batch precedes this one. `is_listed` is true if the client's response names each bad
    record. `marks` describes how a broker's own metrics count the batch.
    """

    mode: Mode
    finding: Finding
    copies: Copies | None = None
    is_further: bool = False
    is_listed: bool = True
    marks: Mapping[BrokerMeter, int] = _NO_MARKS


class BatchOutcome(NamedTuple):
    """One batch's outcome.

    `topic` is None if the name for the topic id is unknown. `records` is the record count in the batch header, and
    `size` is in bytes. `error` is the error code in the client's response, or None without a response. `findings`
    contains the results of validation, even if the batch is forwarded. `waiver` explains why the batch was not
    validated or a finding was not enforced. `basis` is None if the batch was not validated or nothing was found.

    The next two fields are None unless validation accepts the batch. `ahead_ms` is how far its latest timestamp is
    after the proxy's clock. `age_ms` is how far its base timestamp is before that clock, or None without a base
    timestamp.

    `masked` is the number of records that each policy for sensitive fields has changed, and `masked_records` is the
    total. `rehearsed` is the number of records that each rehearsed bound would reject, in the policy's order.
    `unreadable` names the parts of a forwarded batch that some clients cannot read.
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
        """Whether the batch was validated, even if the result was not enforced."""
        return self.ahead_ms is not None or bool(self.findings)

    @property
    def is_reported(self) -> bool:
        """Whether the batch needs any report besides its counts."""
        return self.basis is not None


class RequestOutcome(NamedTuple):
    """The outcome of the batches in one Produce request of `size` bytes.

    `sent_ms` is the time when the proxy forwarded the request or responded to it, in milliseconds since the epoch.
    `proxy_seconds` is the time from the request's complete arrival until then. `upstream_seconds` is the time from then
    until the broker's response, or None without a response. `is_converted` is true if the proxy converted the request
    from the older version `version`.
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
    is_converted: bool = False
