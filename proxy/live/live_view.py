"""One process's live view: traffic by second, violation groups, latest violations and timestamp distances.

The observer reports validations to this view. It formats them only when a reader requests the state.
"""

from collections import deque
from typing import TYPE_CHECKING

from sluicegate.proxy.live.flow_history import Flow, FlowHistory
from sluicegate.proxy.live.timestamp_distances import TimestampDistances
from sluicegate.proxy.live.traffic import MAX_CLIENTS, MAX_TOPICS, Traffic
from sluicegate.proxy.live.violation_groups import GroupKey, ViolationGroups
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.events.violation_event import REHEARSE, Event, ViolationEvent
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.session.produce.batch_outcome import BatchOutcome, RequestOutcome
from sluicegate.validation.outcome import Outcome
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.verdict import Reason

if TYPE_CHECKING:
    from sluicegate.validation.ordinary import OrdinaryRequests

MAX_VIOLATIONS = 200
_NOT_ACCEPTED = frozenset({Outcome.REJECTED, Outcome.RESEND})
_ENFORCED = frozenset({Mode.REJECT.value, Mode.QUARANTINE.value})
_MESSAGE_CHARACTERS = 500
_MAX_RULES = 5


class LiveView:
    """Collects the live view, and never blocks.

    It receives the outcomes of the slow path from Observer, the traffic of both paths from ValidationCounts (`sent_by`
    and `sent_to`), and each violation from ViolationEvents (`write`).
    """

    def __init__(
        self,
        counters: Counters,
        ordinary: "OrdinaryRequests | None",
        began_ms: int,
    ) -> None:
        self._counters = counters
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

    def request_settled(self, request: RequestOutcome) -> None:
        """Count a request of the slow path, and record its topics."""
        self._size += request.size
        for name in request.topics:
            if name:
                self.topics.seen(name)

    def batch_settled(self, _client: ClientDetails, batch: BatchOutcome) -> None:
        """Count the distance of a batch's timestamps."""
        self.distances.settled(batch)

    def sent_by(self, client_id: str | None, batches: int, records: int, size: int) -> None:
        """Count a client's validated batches."""
        self.clients.add(client_id, batches, records, size)

    def sent_to(self, topic: str, batches: int, records: int, size: int) -> None:
        """Count a topic's validated batches."""
        self.topics.add(topic, batches, records, size)

    def write(self, event: Event) -> None:
        """Count a violation, and list it unless many equal ones are already listed."""
        client_id = None if event.client.client_id is None else cut(event.client.client_id)
        topic = event.topic
        if isinstance(event, ViolationEvent):
            now_ms, bad_records = event.basis.now_ms, event.bad_count
            outcome = event.outcome
            key = GroupKey(outcome, event.mode.value, event.changes, event.copies, client_id, topic, event.reason)
            self.distances.rejected(event)
        else:
            now_ms, bad_records = event.now_ms, max(count for _, count in event.found)
            outcome = event.batch.outcome
            key = GroupKey(outcome, REHEARSE, event.batch.changes, None, client_id, topic, Reason.REHEARSED_BOUND)
        if outcome in _NOT_ACCEPTED and key.mode in _ENFORCED:
            self._rejected += 1
            self._rejected_records += bad_records
        else:
            self._observed += 1
        self.clients.add(client_id, violations=1)
        if topic is not None:
            self.topics.add(topic, violations=1)
        group = self.violation_groups.add(key, bad_records, now_ms, event.client.holder)
        if group is not None:
            group.example = _kept(event) if isinstance(event, ViolationEvent) else event
            self._events += 1
            self.violations.append((self._events, now_ms, group.example))

    def close(self) -> None:
        """Do nothing, because nothing is written."""

    def tick(self, now_ms: int) -> None:
        """Store the totals. Called about once a second."""
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


def _kept(violation: ViolationEvent) -> ViolationEvent:
    """Return the event with at most one bad record.

    The record's contents are included if `samples` is true for the topic.
    """
    records, message = violation.bad_records, violation.message or ""
    if len(records) <= 1 and len(message) <= _MESSAGE_CHARACTERS and not violation.rules:
        return violation
    kept = None if violation.message is None else cut(message, _MESSAGE_CHARACTERS)
    return violation._replace(message=kept, bad_records=records[:1], rules=violation.rules[:_MAX_RULES])
