"""Sees every judgement: counts it, and writes a violation event and a log line for what was refused."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest, TopicData
from sluicegate.proxy.answers.dead_letters import DeadLetters
from sluicegate.proxy.reporting.aggregation import Aggregator, Wider
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.client_labels import ClientLabels
from sluicegate.proxy.reporting.rule_labels import RuleLabels
from sluicegate.proxy.reporting.tally import Tally
from sluicegate.proxy.reporting.topic_labels import TopicLabels
from sluicegate.proxy.reporting.violation_event import TIMED, Rehearsal, Who, violation, who
from sluicegate.proxy.reporting.violations import ViolationSink
from sluicegate.proxy.session.identity import ClientIdentity
from sluicegate.validation.policy import Mode
from sluicegate.validation.produce import JudgedRequest, Place
from sluicegate.validation.rehearsals import TriedBound, bounds_of
from sluicegate.validation.units import diagnose
from sluicegate.validation.verdict import Reason, Refused

if TYPE_CHECKING:
    from sluicegate.validation.ordinary import OrdinaryRequests

Step = Callable[[], object]
_INTERVAL_SECONDS = 60
_TOLD_AT_ONCE = 50
# KIP-937 announced one hour as the bound that Kafka 4.0 then set.
_FAR_AHEAD_MS = 3_600_000
_NAME_OF = {code: code.name for code in ErrorCode}  # the enum's own takes longer
_OF_A_CLIENT = frozenset({"client_id", "software", "principal", "peer"})


class Observer:
    """Never changes a verdict and never waits. What a refused partition costs the event loop is a few microseconds."""

    def __init__(
        self,
        tally: Tally,
        labels: TopicLabels,
        names: dict[bytes, str],
        violations: ViolationSink | None,
        max_records: int,
        ordinary: "OrdinaryRequests | None",
        later: Callable[[Callable[[], None]], object],
    ) -> None:
        """`ordinary` counts what the fast lane has called good; None: there is none. `later` runs what is still to be
        told of a request once others have had their turn.
        """
        self._tally = tally
        self._labels = labels
        self._names = names
        self._violations = violations
        self._max_records = max_records
        self._ordinary = ordinary
        self._later = later
        self._log = structlog.get_logger("sluicegate")
        self._refusals = Aggregator(_INTERVAL_SECONDS, self._log_refusal, self._wider_refusal)
        self._observed = Aggregator(_INTERVAL_SECONDS, self._log_observed, self._wider_refusal)
        self._fixed = Aggregator(_INTERVAL_SECONDS, self._log_fixed, self._wider_refusal)
        self._quarantined = Aggregator(_INTERVAL_SECONDS, self._log_quarantined, self._wider_refusal)
        self._not_quarantined = Aggregator(_INTERVAL_SECONDS, self._log_not_quarantined, self._wider_refusal)
        self._by_mode = {
            Mode.REJECT: self._refusals,
            Mode.OBSERVE: self._observed,
            Mode.FIX: self._fixed,
            Mode.QUARANTINE: self._quarantined,
        }
        self._rehearsals = Aggregator(_INTERVAL_SECONDS, self._log_rehearsal, self._wider_refusal)
        self._far_ahead = Aggregator(_INTERVAL_SECONDS, self._log_far_ahead, self._wider_far_ahead)
        self._aggregators = (
            *self._by_mode.values(),
            self._not_quarantined,
            self._rehearsals,
            self._far_ahead,
        )
        self._clients = ClientLabels(tally)
        self._rules = RuleLabels(tally)

    def judged(self, identity: ClientIdentity, request: ProduceRequest, judged: JudgedRequest) -> None:
        """One Produce request was judged."""
        tally = self._tally
        tally.produce_requests += 1
        tally.unchecked_partitions += judged.unchecked
        tally.exempt_partitions += judged.exempt
        tally.accepted_partitions += len(judged.accepted)
        for place, accepted in judged.accepted.items():
            tally.accepted_records += accepted.records
            if accepted.ahead_ms > _FAR_AHEAD_MS:
                self._warn_far_ahead(identity, self._name(request.topics[place[0]]), accepted.ahead_ms)
        if judged.held_to:
            self._tell(who(identity), request, judged)

    def _tell(self, client: Who, request: ProduceRequest, judged: JudgedRequest) -> None:
        """A few at once, so that others have their turn in between."""
        told: list[Step] = []
        for place, refused in judged.refused.items():
            if place not in judged.left_open:  # it comes again
                mode = Mode.QUARANTINE if place in judged.quarantined else Mode.REJECT
                told.append(partial(self._refused, mode, client, request, judged, place, refused))
        told += [partial(self._refused, Mode.OBSERVE, client, request, judged, *one) for one in judged.observed.items()]
        fixed = [(place, one.refused) for place, one in judged.fixed.items()]
        told += [partial(self._refused, Mode.FIX, client, request, judged, *one) for one in fixed]
        told += [partial(self._rehearsed, client, request, judged, *one) for one in judged.rehearsed.items()]
        for first in range(0, len(told), _TOLD_AT_ONCE):
            step = partial(_all_of, told[first : first + _TOLD_AT_ONCE])
            if first == 0:
                step()
            else:
                self._later(step)

    def not_quarantined(self, identity: ClientIdentity, letters: DeadLetters, reason: str) -> None:
        """The bad records of a batch could not be kept; its client was told to send it again."""
        client = who(identity)
        self._labels.not_quarantined(letters.source)
        shown = cut(letters.source)
        key = (client.client_id, shown, reason)
        records = len(letters.records)
        self._not_quarantined.note(key, records, time.monotonic(), _not_kept, client, shown, letters, reason)

    def learn(self, topic: str) -> None:
        """A broker's answer has shown that `topic` exists; its counts have a label of their own from now on."""
        self._labels.learn(topic)

    def counted(self) -> Tally:
        """The counters at one moment; may be asked from another thread."""
        counted = self._labels.counted()
        ordinary = self._ordinary
        if ordinary is not None:
            counted.produce_requests += ordinary.requests
            counted.accepted_partitions += ordinary.partitions
            counted.accepted_records += ordinary.records
            counted.unchecked_partitions += ordinary.unchecked
        return counted

    def sweep(self) -> None:
        """Write aggregated lines that are due; called every few seconds."""
        now = time.monotonic()
        for aggregator in self._aggregators:
            aggregator.sweep(now)

    def close(self) -> None:
        """Write everything that has gathered."""
        for aggregator in self._aggregators:
            aggregator.flush()
        if self._violations is not None:
            self._violations.close()

    def _name(self, topic: TopicData) -> str | None:
        return topic.name if topic.name is not None else self._names.get(topic.topic_id or b"")

    def _refused(
        self, mode: Mode, client: Who, request: ProduceRequest, judged: JudgedRequest, place: Place, refused: Refused
    ) -> None:
        topic = request.topics[place[0]]
        partition = topic.partitions[place[1]].index
        held_to = judged.held_to[place]
        name = self._name(topic)
        match mode:
            case Mode.REJECT:
                self._labels.refused(name, _NAME_OF[refused.code], refused.bad_count)
            case Mode.OBSERVE:
                self._labels.observed(name, _NAME_OF[refused.code], refused.bad_count)
            case Mode.FIX:
                self._labels.fixed(name, refused.bad_count)
            case Mode.QUARANTINE:
                self._labels.quarantined(name, _NAME_OF[refused.code], refused.bad_count)
        if refused.rules:
            self._rules.broken(mode, refused)
        if self._violations is not None:
            self._violations.write(
                violation(mode, client, name, topic.topic_id, partition, refused, held_to, self._max_records)
            )
        shown = name if name is None else cut(name)
        self._by_mode[mode].note(
            (client.client_id, shown, _what(refused)),
            max(1, refused.bad_count),
            time.monotonic(),
            _refusal,
            *(client, shown, partition, refused, held_to.now_ms),
        )

    def _rehearsed(
        self, client: Who, request: ProduceRequest, judged: JudgedRequest, place: Place, counts: tuple[int, ...]
    ) -> None:
        topic = request.topics[place[0]]
        partition = topic.partitions[place[1]].index
        policy, now_ms = judged.held_to[place]
        assert policy.rehearsed is not None
        name = self._name(topic)
        shown = name if name is None else cut(name)
        found = [(bound, count) for bound, count in zip(bounds_of(policy.rehearsed), counts, strict=True) if count]
        for bound, count in found:
            label = f"{bound.key}={bound.max_ms}"
            self._labels.rehearsed(name, label, count)
            self._clients.rehearsed(client.client_id, label)
            details = (client, shown, partition, bound)
            self._rehearsals.note((client.client_id, shown, label), count, time.monotonic(), _rehearsal, *details)
        if self._violations is not None:
            records = judged.records_of(place)
            self._violations.write(Rehearsal(client, shown, topic.topic_id, partition, records, tuple(found), now_ms))

    def _warn_far_ahead(self, identity: ClientIdentity, topic: str | None, ahead_ms: int) -> None:
        self._labels.far_ahead(topic)
        shown = topic if topic is None else cut(topic)
        client_id = identity.client_id if identity.client_id is None else cut(identity.client_id)
        self._far_ahead.note((client_id, shown), 0, time.monotonic(), _far_ahead, identity, shown, ahead_ms)

    def _wider_refusal(self, key: tuple[str | None, str | None, Any]) -> Wider:
        _, topic, reason = key
        if topic is not None and self._labels.knows(topic):
            return Wider((topic, reason), _OF_A_CLIENT)
        return Wider((None, reason), _OF_A_CLIENT | {"topic"})

    def _wider_far_ahead(self, key: tuple[str | None, str | None]) -> Wider:
        topic = key[1]
        if topic is not None and self._labels.knows(topic):
            return Wider((topic,), _OF_A_CLIENT)
        return Wider((None,), _OF_A_CLIENT | {"topic"})

    def _log_refusal(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning("refused", **_said(details), batches=times, bad_records=records)

    def _log_observed(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning(
            "forwarded, though mode reject would refuse it", **_said(details), batches=times, bad_records=records
        )

    def _log_fixed(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning("fixed: forwarded with other times", **_said(details), batches=times, bad_records=records)

    def _log_quarantined(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning(
            "refused, and bad records kept in the dead-letter topic",
            **_said(details),
            batches=times,
            bad_records=records,
        )

    def _log_not_quarantined(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.error(
            "bad records cannot be kept, so their batches are to be sent again: see that the dead-letter topic exists "
            "and may be written",
            **_said(details),
            batches=times,
            bad_records=records,
        )

    def _log_rehearsal(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.info("a bound on trial would refuse this", **_said(details), batches=times, bad_records=records)

    def _log_far_ahead(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.warning(
            "accepted, but more than an hour ahead: Kafka 4 refuses such timestamps by default (KIP-937)",
            **_said(details),
            batches=times,
        )


def _what(refused: Refused) -> Reason | tuple[Reason, str]:
    """What tells one refusal from another: the reason, and the rule where it is one."""
    return (refused.reason, refused.rules[0][0]) if refused.rules else refused.reason


def _refusal(client: Who, topic: str | None, partition: int, refused: Refused, now_ms: int) -> dict[str, Any]:
    details: dict[str, Any] = {
        "client_id": client.client_id,
        "software": _software(client),
        "principal": client.principal,
        "peer": client.peer,
        "topic": topic,
        "partition": partition,
        "error": refused.code.name,
        "reason": refused.reason.value,
    }
    if refused.rules:
        details["rule"] = cut(refused.rules[0][0])
    if refused.bad_records:
        first = refused.bad_records[0]
        details |= {"record": first.index, "record_timestamp": first.timestamp}
        if first.reason in TIMED:
            details["diagnosis"] = diagnose(first.timestamp, now_ms)
        elif first.rules:
            details["diagnosis"] = cut(first.message)
        if first.fixed is not None:
            details["fixed_timestamp"] = first.fixed
    elif refused.rules:
        details["diagnosis"] = None if refused.message is None else cut(refused.message)
    return details


def _not_kept(client: Who, topic: str, letters: DeadLetters, reason: str) -> dict[str, Any]:
    return {
        "client_id": client.client_id,
        "software": _software(client),
        "principal": client.principal,
        "peer": client.peer,
        "topic": topic,
        "partition": letters.partition,
        "dead_letter_topic": letters.topic,
        "reason": reason,
    }


def _rehearsal(client: Who, topic: str | None, partition: int, bound: TriedBound) -> dict[str, Any]:
    return {
        "client_id": client.client_id,
        "software": _software(client),
        "principal": client.principal,
        "peer": client.peer,
        "topic": topic,
        "partition": partition,
        "bound": bound.key,
        "max_ms": bound.max_ms,
    }


def _all_of(steps: list[Step]) -> None:
    for step in steps:
        step()


def _far_ahead(identity: ClientIdentity, topic: str | None, ahead_ms: int) -> dict[str, Any]:
    client = who(identity)
    return {
        "client_id": client.client_id,
        "software": _software(client),
        "peer": client.peer,
        "topic": topic,
        "ahead_ms": ahead_ms,
    }


def _software(client: Who) -> str | None:
    return None if client.software_name is None else f"{client.software_name} {client.software_version}"


def _said(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if value is not None}
