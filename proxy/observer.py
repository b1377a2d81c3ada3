"""Sees every judgement: counts it, and writes a violation event and a log line for what was refused."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.produce_request import ProduceRequest, TopicData
from sluicegate.proxy.aggregation import Aggregator, Wider
from sluicegate.proxy.bounded_text import cut
from sluicegate.proxy.identity import ClientIdentity
from sluicegate.proxy.tally import Tally
from sluicegate.proxy.topic_labels import TopicLabels
from sluicegate.proxy.violation_event import TIMED, Who, violation, who
from sluicegate.proxy.violations import ViolationSink
from sluicegate.validation.produce import JudgedRequest, Place
from sluicegate.validation.units import diagnose
from sluicegate.validation.verdict import Refused

if TYPE_CHECKING:
    from sluicegate.validation.ordinary import OrdinaryRequests

_INTERVAL_SECONDS = 60
_REFUSED_AT_ONCE = 50
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
        self._far_ahead = Aggregator(_INTERVAL_SECONDS, self._log_far_ahead, self._wider_far_ahead)

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
        if judged.refused:
            client, refused = who(identity), list(judged.refused.items())
            for first in range(0, len(refused), _REFUSED_AT_ONCE):
                step = partial(self._refused, client, request, judged, refused[first : first + _REFUSED_AT_ONCE])
                if first == 0:
                    step()
                else:
                    self._later(step)

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
        self, client: Who, request: ProduceRequest, judged: JudgedRequest, some: list[tuple[Place, Refused]]
    ) -> None:
        now = time.monotonic()
        for place, refused in some:
            topic = request.topics[place[0]]
            partition = topic.partitions[place[1]].index
            held_to = judged.held_to[place]
            name = self._name(topic)
            self._labels.refused(name, _NAME_OF[refused.code], refused.bad_count)
            if self._violations is not None:
                self._violations.write(
                    violation(client, name, topic.topic_id, partition, refused, held_to, self._max_records)
                )
            shown = name if name is None else cut(name)
            self._refusals.note(
                (client.client_id, shown, refused.reason),
                max(1, refused.bad_count),
                now,
                _refusal,
                *(client, shown, partition, refused, held_to.now_ms),
            )

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

    def _log_far_ahead(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.warning(
            "accepted, but more than an hour ahead: Kafka 4 refuses such timestamps by default (KIP-937)",
            **_said(details),
            batches=times,
        )


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
    if refused.bad_records:
        first = refused.bad_records[0]
        details |= {"record": first.index, "record_timestamp": first.timestamp}
        if first.reason in TIMED:
            details["diagnosis"] = diagnose(first.timestamp, now_ms)
    return details


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
