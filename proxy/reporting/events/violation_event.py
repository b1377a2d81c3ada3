"""Violation events (docs/violations.md): snapshots of the verdict on one partition, and their JSON objects.

Taking a snapshot costs about a microsecond on the event loop. The writing thread creates the JSON object.
"""

from codecs import getincrementaldecoder
from datetime import UTC, datetime
from itertools import count
from secrets import token_hex
from typing import Any, Final, NamedTuple, TypedDict

from sluicegate.config.teams import Owner
from sluicegate.protocol.errors import ERROR_NAMES, ErrorCode
from sluicegate.proxy.reporting.bounded_text import CLIENT_CHARACTERS, cut, printable
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome, ReportedFinding
from sluicegate.validation.effective import EffectiveValue, value_of, violated_value
from sluicegate.validation.event_schema import SCHEMA_VERSION
from sluicegate.validation.outcome import Change, Copies, Outcome, Waiver
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.requests.name_pattern import owner_among
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.timestamps import RehearsedBound, TimeWindow, window_of
from sluicegate.validation.units import diagnose
from sluicegate.validation.validated_request import ValidationBasis
from sluicegate.validation.verdict import TIMED, BadRecord, Beginning, Reason

_MESSAGE_CHARACTERS = 4000  # a broker's longest message names three records of a topic with a 249-character name
_DIAGNOSIS_CHARACTERS = 1000
_MOST_RULES = 50
_OF_AN_EVENT = 1000  # the estimated bytes of an event without its message and records
_OF_A_RECORD = 450
_OF_A_BOUND = 200
_OF_CONTENTS = 1000  # for the beginnings of a key and a value
REHEARSE: Final = "rehearse"
"""The mode of an event about a rehearsed bound."""
_UNKNOWN_POLICY = TopicPolicy()
_LATEST_MS = 253_402_300_799_999  # `datetime.max`, in ms since 1970


class OwnerState(TypedDict):
    """The team that owns a topic or a client, with its contact."""

    team: str
    contact: str | None


class EventOrigin(NamedTuple):
    """The proxy that created an event, and the event's unique id."""

    proxy: str
    id: str


class EventNumbering:
    """Assigns an origin to each event of one process. `proxy` is the proxy's name."""

    def __init__(self, proxy: str) -> None:
        self._proxy = proxy
        self._process = token_hex(8)
        self._numbers = count(1)

    def next(self) -> EventOrigin:
        """Return the origin of the next event."""
        return EventOrigin(self._proxy, f"{self._process}-{next(self._numbers)}")


class ViolationEvent(NamedTuple):
    """A violation in one batch, and the batch's outcome.

    `mode` is the policy's mode. `outcome`, `client_error`, `changes` and `waiver` have the same meaning as in
    `BatchOutcome`, `copies` as in `ReportedFinding`, and `rules` as in `Finding`. `bad_records` lists some bad records,
    and `bad_count` is the number of all bad records.
    """

    mode: Mode
    outcome: Outcome
    client_error: int | None
    changes: tuple[Change, ...]
    copies: Copies | None
    waiver: Waiver | None
    client: ClientDetails
    topic: str | None
    topic_id: bytes | None
    partition: int
    code: ErrorCode
    reason: Reason
    message: str | None
    records: int
    bad_count: int
    bad_records: tuple[BadRecord, ...]
    basis: ValidationBasis
    origin: EventOrigin
    rules: tuple[tuple[str, int], ...] = ()

    @property
    def size(self) -> int:
        """The event's estimated memory in bytes."""
        texts = len(self.message or "") + sum(len(record.message) for record in self.bad_records if record.rules)
        shown = sum(_OF_CONTENTS for record in self.bad_records if record.contents is not None)
        return _OF_AN_EVENT + _OF_A_RECORD * len(self.bad_records) + 4 * texts + shown


class RehearsalEvent(NamedTuple):
    """The rehearsed bounds that would reject records of one batch, each with the number of those records."""

    client: ClientDetails
    batch: BatchOutcome
    found: tuple[tuple[RehearsedBound, int], ...]
    now_ms: int
    origin: EventOrigin
    policy: TopicPolicy = _UNKNOWN_POLICY

    @property
    def topic(self) -> str | None:
        """The topic's name, truncated if it is long."""
        return _cut(self.batch.topic)

    @property
    def topic_id(self) -> bytes | None:
        """The topic's id, if the request contains it."""
        return self.batch.topic_id

    @property
    def partition(self) -> int:
        """The partition's index."""
        return self.batch.partition

    @property
    def size(self) -> int:
        """The event's estimated memory in bytes."""
        return _OF_AN_EVENT + _OF_A_BOUND * len(self.found)


Event = ViolationEvent | RehearsalEvent


def violation_event(
    client: ClientDetails, batch: BatchOutcome, reported: ReportedFinding, origin: EventOrigin, max_records: int
) -> ViolationEvent:
    """Create the event for a finding, with at most `max_records` bad records."""
    finding = reported.finding
    assert batch.basis is not None  # otherwise there would be no finding
    return ViolationEvent(
        reported.mode,
        batch.outcome,
        batch.error,
        batch.changes,
        reported.copies,
        batch.waiver,
        client,
        _cut(batch.topic),
        batch.topic_id,
        batch.partition,
        finding.code,
        finding.reason,
        finding.message if finding.message is None else cut(finding.message, _MESSAGE_CHARACTERS),
        finding.records,
        finding.bad_count,
        finding.bad_records[:max_records],
        batch.basis,
        origin,
        finding.rules,
    )


def event_of(event: Event) -> dict[str, Any]:
    """Return an event's JSON object, version 1 (docs/violations.md). Long strings are truncated."""
    return _of_violation(event) if isinstance(event, ViolationEvent) else _of_rehearsal(event)


def _of_violation(violation: ViolationEvent) -> dict[str, Any]:
    policy, now_ms = violation.basis
    window = window_of(policy, now_ms)
    event = _where(violation, now_ms, policy) | {
        "outcome": violation.outcome.value,
        "client_error": _error_name(violation.client_error),
        "mode": violation.mode.value,
        "changes": [change.value for change in violation.changes],
        "copies": None if violation.copies is None else violation.copies.value,
        "waiver": None if violation.waiver is None else violation.waiver.value,
        "code": int(violation.code),
        "error": violation.code.name,
        "reason": violation.reason.value,
        "reason_text": violation.reason.text,
        "message": violation.message,
        "records": violation.records,
        "bad_records": violation.bad_count,
        "samples": [_sample(record, window, now_ms) for record in violation.bad_records],
        "bound": _bound(violated_value(policy, violation.reason, violation.rules[0][0] if violation.rules else None)),
    }
    if policy.enforced is not None and not policy.only_observes(rule for rule, _ in violation.rules):
        event["enforced"] = policy.mode is not Mode.OBSERVE
    if violation.rules:
        event["rule"] = cut(violation.rules[0][0])
        event["rules"] = [{"rule": cut(rule), "bad_records": count} for rule, count in violation.rules[:_MOST_RULES]]
    return event


def _of_rehearsal(rehearsal: RehearsalEvent) -> dict[str, Any]:
    batch = rehearsal.batch
    return _where(rehearsal, rehearsal.now_ms, rehearsal.policy) | {
        "outcome": batch.outcome.value,
        "client_error": _error_name(batch.error),
        "mode": REHEARSE,
        "changes": [change.value for change in batch.changes],
        "copies": None,
        "waiver": None if batch.waiver is None else batch.waiver.value,
        "code": int(ErrorCode.INVALID_TIMESTAMP),
        "error": ErrorCode.INVALID_TIMESTAMP.name,
        "reason": Reason.REHEARSED_BOUND.value,
        "reason_text": Reason.REHEARSED_BOUND.text,
        "message": None,
        "records": batch.records,
        "bad_records": max(count for _, count in rehearsal.found),
        "samples": [],
        "bound": _bound(value_of(rehearsal.policy, "rehearse")),
        "rehearsed": [
            {"key": bound.key, "max_ms": bound.max_ms, "bad_records": count} for bound, count in rehearsal.found
        ],
    }


def _error_name(code: int | None) -> str | None:
    """Return the name of the error that the client received, or None if it received none."""
    return None if code is None else ERROR_NAMES.get(code, str(code))


def _bound(value: EffectiveValue | None) -> dict[str, Any] | None:
    """Return the effective value that the event concerns, with its source. Long strings are truncated."""
    if value is None:
        return None
    return {
        name: cut(given, _DIAGNOSIS_CHARACTERS) if isinstance(given, str) else given
        for name, given in value.as_json().items()
    }


def _where(event: Event, now_ms: int, policy: TopicPolicy) -> dict[str, Any]:
    time = datetime.fromtimestamp(min(max(now_ms, 0), _LATEST_MS) / 1000, UTC)
    client = event.client
    owner_of_client = owner_among(policy.client_owners, client.named)
    owner = policy.owner or owner_of_client
    shown = {
        "schema_version": SCHEMA_VERSION,
        "id": event.origin.id,
        "proxy": event.origin.proxy,
        "time": time.isoformat(timespec="milliseconds"),
        "client_id": _cut(client.client_id),
        "software_name": _cut(client.software_name),
        "software_version": _cut(client.software_version),
        "principal": _cut(client.principal),
        "client_address": client.peer,
        "topic": event.topic,
        "topic_id": event.topic_id.hex() if event.topic_id is not None else None,
        "partition": event.partition,
        "owner": None if owner is None else owner_as_shown(owner),
    }
    return shown if owner_of_client is None else shown | {"client_owner": owner_as_shown(owner_of_client)}


def owner_as_shown(owner: Owner) -> OwnerState:
    """Return an owner in the form of events and the live state. Long strings are truncated."""
    return {"team": cut(owner.team), "contact": _cut(owner.contact)}


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= CLIENT_CHARACTERS else cut(text)


def _sample(record: BadRecord, window: TimeWindow | None, now_ms: int) -> dict[str, Any]:
    sample: dict[str, Any] = {"index": record.index, "timestamp": record.timestamp, "reason": record.reason.value}
    if record.reason in TIMED and window is not None:
        sample["earliest"], sample["latest"] = window.earliest, window.latest
        sample["diagnosis"] = diagnose(record.timestamp, now_ms)
    if record.rules:
        sample["rule"] = cut(record.rules[0])
        sample["diagnosis"] = cut(record.message, _DIAGNOSIS_CHARACTERS)
    if record.fixed is not None:
        sample["fixed"] = record.fixed
    if record.contents is not None:
        sample["key"], sample["value"] = map(shown_beginning, record.contents)
    return sample


def shown_beginning(part: Beginning | None) -> dict[str, Any] | None:
    r"""Return the size of a key or value, and its beginning as printable text.

    Return None if it is null. Bytes that are not UTF-8 become `\xff`. Invisible characters become `\n` or `\u202e`. A
    backslash is doubled.
    """
    if part is None:
        return None
    decoder = getincrementaldecoder("utf-8")("backslashreplace")  # omits a character that was cut in the middle
    text = decoder.decode(part.data.replace(b"\\", b"\\\\"), final=len(part.data) == part.size)
    return {"size": part.size, "text": printable(text)}
