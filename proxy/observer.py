"""Sees every judgement: counts it, and writes a violation event and a log line for what was refused."""

import time
from typing import Any

import structlog

from protocol.produce_request import ProduceRequest, TopicData
from proxy.aggregation import Aggregator
from proxy.identity import ClientIdentity
from proxy.metrics import Tally
from proxy.violations import ViolationSink, violation_event
from validation.policies import TopicPolicies
from validation.produce import JudgedRequest
from validation.units import diagnose
from validation.verdict import Refused

_INTERVAL_SECONDS = 60
# KIP-937 announced one hour as the bound that Kafka 4.0 then set.
_FAR_AHEAD_MS = 3_600_000


class Observer:
    """Never changes a verdict and never waits."""

    def __init__(
        self,
        tally: Tally,
        policies: TopicPolicies,
        names: dict[bytes, str],
        violations: ViolationSink | None,
        max_records: int,
    ) -> None:
        self._tally = tally
        self._policies = policies
        self._names = names
        self._violations = violations
        self._max_records = max_records
        self._log = structlog.get_logger("sluicegate")
        self._refusals = Aggregator(_INTERVAL_SECONDS, self._log_refusal)
        self._far_ahead = Aggregator(_INTERVAL_SECONDS, self._log_far_ahead)

    def judged(self, identity: ClientIdentity, request: ProduceRequest, judged: JudgedRequest) -> None:
        """One Produce request was judged."""
        tally = self._tally
        tally.produce_requests += 1
        tally.unchecked_partitions += judged.unchecked
        tally.accepted_partitions += len(judged.accepted)
        for place, accepted in judged.accepted.items():
            tally.accepted_records += accepted.records
            if accepted.ahead_ms > _FAR_AHEAD_MS:
                self._warn_far_ahead(identity, self._name(request.topics[place[0]]), accepted.ahead_ms)
        for (t, p), refused in judged.refused.items():
            topic = request.topics[t]
            self._refused(identity, topic, topic.partitions[p].index, refused, judged.refused_at_ms[t, p])

    def sweep(self) -> None:
        """Write aggregated lines that are due; called every few seconds."""
        now = time.monotonic()
        self._refusals.sweep(now)
        self._far_ahead.sweep(now)

    def close(self) -> None:
        """Write everything that has gathered."""
        self._refusals.flush()
        self._far_ahead.flush()
        if self._violations is not None:
            self._violations.close()

    def _name(self, topic: TopicData) -> str | None:
        return topic.name if topic.name is not None else self._names.get(topic.topic_id or b"")

    def _refused(
        self, identity: ClientIdentity, topic: TopicData, partition: int, refused: Refused, now_ms: int
    ) -> None:
        name = self._name(topic)
        label = self._tally.topic_label(name or "?")
        self._tally.refused[label, refused.code.name] += 1
        self._tally.refused_records[label] += len(refused.bad_records)
        if self._violations is not None:
            policy = self._policies.of(name or "")
            event = violation_event(
                identity, name, topic.topic_id, partition, refused, policy, now_ms, self._max_records
            )
            self._violations.write(event)
        details: dict[str, Any] = {
            "client_id": identity.client_id,
            "software": _software(identity),
            "principal": identity.principal,
            "peer": identity.peer,
            "topic": name,
            "partition": partition,
            "error": refused.code.name,
            "reason": refused.reason.value,
        }
        if refused.bad_records:
            first = refused.bad_records[0]
            details |= {"record": first.index, "record_timestamp": first.timestamp}
            details["diagnosis"] = diagnose(first.timestamp, now_ms)
        key = (identity.client_id, name, refused.reason)
        self._refusals.note(key, details, max(1, len(refused.bad_records)), time.monotonic())

    def _warn_far_ahead(self, identity: ClientIdentity, topic: str | None, ahead_ms: int) -> None:
        self._tally.far_ahead[self._tally.topic_label(topic or "?")] += 1
        details = {
            "client_id": identity.client_id,
            "software": _software(identity),
            "peer": identity.peer,
            "topic": topic,
            "ahead_ms": ahead_ms,
        }
        self._far_ahead.note((identity.client_id, topic), details, 0, time.monotonic())

    def _log_refusal(self, details: dict[str, Any], times: int, records: int) -> None:
        self._log.warning("refused", **_said(details), batches=times, bad_records=records)

    def _log_far_ahead(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.warning(
            "accepted, but more than an hour ahead: Kafka 4 refuses such timestamps by default (KIP-937)",
            **_said(details),
            batches=times,
        )


def _software(identity: ClientIdentity) -> str | None:
    if identity.software_name is None:
        return None
    return f"{identity.software_name} {identity.software_version}"


def _said(details: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if value is not None}
