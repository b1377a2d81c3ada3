"""The live view of one process: traffic by second, violation groups, latest violations, timestamp distances.

The observer reports validations here; they become text only when a reader asks for the state.
"""

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.live.flow_history import Flow, FlowHistory
from sluicegate.proxy.live.timestamp_distances import TimestampDistances
from sluicegate.proxy.live.traffic import MAX_CLIENTS, MAX_TOPICS, Traffic
from sluicegate.proxy.live.violation_groups import Key, ViolationGroups
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.events.violation_event import (
    Event,
    EventNumbering,
    NotStored,
    Violation,
    client_details,
    violation,
)
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.validated_request import Place, ValidatedRequest
from sluicegate.validation.verdict import Reason

if TYPE_CHECKING:
    from sluicegate.validation.ordinary import OrdinaryRequests

MAX_VIOLATIONS = 200
REJECTING = frozenset({Mode.REJECT.value, Mode.QUARANTINE.value, NotStored.RETRY.value})
"""The outcomes of violations that reject a batch; others forward it."""
_MESSAGE_CHARACTERS = 500
_MAX_RULES = 5


class LiveView:
    """Never waits. It has three inputs: `validated` receives each request of the slow path (from ValidationRecorder),
    `sent_by` and `sent_to` the traffic of both paths (from ValidationCounts), and `write` each violation (from
    Observer, whose violation sink it is). `topics_by_id`: the names of topics.
    """

    def __init__(
        self,
        counters: Counters,
        ordinary: "OrdinaryRequests | None",
        began_ms: int,
        topics_by_id: Mapping[bytes, str],
        numbering: EventNumbering,
    ) -> None:
        self._numbering = numbering
        self._counters = counters
        self._topics_by_id = topics_by_id
        self._ordinary = ordinary
        self._size = self._rejected = self._rejected_records = self._observed = 0
        self.began_ms = began_ms
        self.history = FlowHistory()
        self.violation_groups = ViolationGroups()
        self.topics = Traffic(MAX_TOPICS, began_ms)
        self.clients = Traffic(MAX_CLIENTS, began_ms)
        self.distances = TimestampDistances(ordinary)
        self.violations: deque[tuple[int, int, Event]] = deque(maxlen=MAX_VIOLATIONS)
        self._events = 0

    def validated(
        self, identity: ClientIdentity, request: ProduceRequest, validated: ValidatedRequest, now_ms: int
    ) -> None:
        """Count a request that the slow path validated, and note its topics, and what could not be quarantined."""
        self._size += len(request.frame)
        self.distances.validated(request, validated, now_ms)
        for topic in request.topics:
            name = topic.name_by(self._topics_by_id)
            if name:
                self.topics.seen(name)
        for place, reason in validated.to_retry.items():
            self.write(self._not_stored(identity, request, validated, place, reason))

    def _not_stored(
        self, identity: ClientIdentity, request: ProduceRequest, validated: ValidatedRequest, place: Place, reason: str
    ) -> Violation:
        topic, basis = request.topics[place[0]], validated.basis[place]
        found = violation(
            NotStored.RETRY,
            client_details(identity),
            topic.name_by(self._topics_by_id),
            topic.topic_id,
            topic.partitions[place[1]].index,
            validated.to_quarantine[place][0],
            basis,
            self._numbering.next(),
            1,
        )
        where = basis.policy.dead_letters
        return found._replace(message=f"its bad records cannot be stored in dead-letter topic {where}: {cut(reason)}")

    def sent_by(self, client_id: str | None, batches: int, records: int, size: int) -> None:
        """Count validated batches of a client."""
        self.clients.add(client_id, batches, records, size)

    def sent_to(self, topic: str, batches: int, records: int, size: int) -> None:
        """Count validated batches of a topic."""
        self.topics.add(topic, batches, records, size)

    def write(self, event: Event) -> None:
        """Count a violation, and list it unless it is one of many equal ones."""
        client_id, topic = event.client.client_id, event.topic
        key: Key
        if isinstance(event, Violation):
            now_ms, bad_records = event.basis.now_ms, event.bad_count
            key = (event.mode.value, client_id, topic, event.reason)
            self.distances.rejected(event)
        else:
            now_ms, bad_records = event.now_ms, max(count for _, count in event.found)
            key = ("rehearse", client_id, topic, Reason.REHEARSED_BOUND)
        if key[0] in REJECTING:
            self._rejected += 1
            self._rejected_records += bad_records
        else:
            self._observed += 1
        self.clients.add(client_id, violations=1)
        if topic is not None:
            self.topics.add(topic, violations=1)
        group = self.violation_groups.add(key, bad_records, now_ms, event.client.holder)
        if group is not None:
            group.example = _kept(event) if isinstance(event, Violation) else event
            self._events += 1
            self.violations.append((self._events, now_ms, group.example))

    def close(self) -> None:
        """Do nothing: nothing is written."""

    def tick(self, now_ms: int) -> None:
        """Store the totals; called about once a second."""
        self.topics.tick(now_ms)
        self.clients.tick(now_ms)
        self.history.add(now_ms // 1000, self.flow())

    def flow(self) -> Flow:
        """Return the totals since the start. Thread-safe."""
        counters, ordinary = self._counters, self._ordinary
        more = (0, 0, 0) if ordinary is None else (ordinary.requests, ordinary.records, ordinary.size)
        return Flow(
            counters.produce_requests + more[0],
            counters.accepted_records + more[1],
            self._size + more[2],
            self._rejected,
            self._rejected_records,
            self._observed,
        )


def _kept(violation: Violation) -> Violation:
    """Return the event with at most one bad record; it has contents if the topic's `samples` is true."""
    records, message = violation.bad_records, violation.message or ""
    if len(records) <= 1 and len(message) <= _MESSAGE_CHARACTERS and not violation.rules:
        return violation
    kept = None if violation.message is None else cut(message, _MESSAGE_CHARACTERS)
    return violation._replace(message=kept, bad_records=records[:1], rules=violation.rules[:_MAX_RULES])
