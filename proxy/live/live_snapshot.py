"""Collects one process's live state, in the caller's thread, which is never the event loop's."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.live.conditions import status_state
from sluicegate.proxy.live.connection_list import connections_of
from sluicegate.proxy.live.flow_history import SECONDS
from sluicegate.proxy.live.live_state import Bounds, BrokerState, LiveState, TrafficHistory
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.live.violation_groups import MAX_GROUPS
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.build_info import VERSION
from sluicegate.proxy.reporting.events.violation_event import event_of
from sluicegate.proxy.reporting.metrics.broker_errors import BrokerErrorCounts
from sluicegate.proxy.scheduling.short_turns import ShortTurns
from sluicegate.proxy.session.handlers.session import Session
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import ActiveCondition
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import TimestampType, TopicPolicy

_MAX_BOUNDS = 50
_MAX_BROKERS = 200
_MAX_BROKER_ERRORS = 200
_NEVER_MS = 1 << 62
_BOOTSTRAP = "bootstrap"
_NO_BROKER = {Condition.STARTING, Condition.UPSTREAM_UNREACHABLE, Condition.UPSTREAM_NOT_A_BROKER}

Broker = tuple[int, HostPort | None, str, str]
"""A broker's node id, address, advertised address, and state."""


@dataclass(frozen=True, slots=True)
class LiveSources:
    """The parts of a proxy that provide its live state. Thread-safe.

    `name` is the proxy's name, `HOST:PORT`. `cluster_id` returns None if the id is unknown.
    """

    name: str
    cluster_id: Callable[[], str | None]
    view: LiveView
    broker_errors: BrokerErrorCounts
    sessions: Iterable[Session]
    rules: RulesInForce
    bootstrap: tuple[HostPort, ...]
    brokers: Callable[[], list[Broker]]
    conditions: Callable[[], list[ActiveCondition]]
    now_ms: Callable[[], int]


@dataclass(frozen=True, slots=True)
class LiveQuery:
    """The part of the state to return.

    It selects `seconds` of history, events after `after_ms` (Unix time), and the `violation_groups` groups with the
    most batches. `history_of` is a pair of "topic" or "client" and a name. If it is None, no such history is returned.
    """

    seconds: int
    after_ms: int
    violation_groups: int
    history_of: tuple[str, str | None] | None = None


EVERYTHING = LiveQuery(SECONDS, 0, MAX_GROUPS)
TOPIC, CLIENT = "topic", "client"


def history_of(kind: str, name: str | None) -> LiveQuery:
    """Create a query for a topic's or a client's history, with little else."""
    return LiveQuery(0, _NEVER_MS, 0, (kind, name))


def live_state(sources: LiveSources, query: LiveQuery) -> LiveState:
    """Return the current state."""
    view = sources.view
    turns = ShortTurns()
    violations = []
    for number, validated_ms, event in list(view.violations):
        if validated_ms > query.after_ms:
            violations.append({"id": f"{view.began_ms}-{number}", **_with_text_timestamps(event_of(event))})
            turns.give_way()
    violation_groups = view.violation_groups.state(query.violation_groups)
    turns.give_way()
    flow = view.flow()
    cluster_id = sources.cluster_id()
    return {
        "time_ms": sources.now_ms(),
        "since_ms": view.began_ms,
        "version": VERSION,
        "proxies": 1,
        "name": cut(sources.name),
        "cluster_id": None if cluster_id is None else cut(cluster_id),
        **status_state(sources.conditions()),
        "totals": flow._asdict(),
        "history": view.history.state(query.seconds),
        "violation_groups": violation_groups,
        "other_violations": view.violation_groups.other,
        "violations": violations,
        "topics": view.topics.state(query.after_ms),
        "clients": view.clients.state(query.after_ms),
        "traffic": _traffic(view, query),
        "distances": view.distances.state(),
        "bounds": _bounds(sources.rules, [group["topic"] for group in violation_groups]),
        "connections": connections_of(sources.sessions, sources.rules.rulebook.in_file.client_owners),
        "brokers": _brokers(sources),
        "broker_errors": sources.broker_errors.state()[:_MAX_BROKER_ERRORS],
        "fleet": [],
    }


def _traffic(view: LiveView, query: LiveQuery) -> TrafficHistory | None:
    if query.history_of is None:
        return None
    kind, name = query.history_of
    return (view.topics if kind == TOPIC else view.clients).history(name)


def _with_text_timestamps(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event with its timestamps as strings, because JavaScript's numbers are exact only up to 2^53."""
    samples = [{**sample, "timestamp": str(sample["timestamp"])} for sample in event["samples"]]
    return {**event, "samples": samples}


def _bounds(rules: RulesInForce, violated: Iterable[str | None]) -> list[Bounds]:
    """Return the bounds of the configuration's entries, and those of topics with violations.

    The cluster's bounds for these topics may be stricter.
    """
    rulebook = rules.rulebook
    file = rulebook.in_file
    named: dict[str, TopicPolicy] = {"defaults": file.default}
    for match, policy in file.topics[:_MAX_BOUNDS]:
        named.setdefault(match, policy)
    for topic in violated:
        if topic is not None and len(named) < 2 * _MAX_BOUNDS:
            named.setdefault(topic, rulebook.policy_of(topic))
    return [
        {"name": cut(name), "before_ms": policy.before_max_ms, "after_ms": policy.after_max_ms}
        for name, policy in named.items()
        if policy.checked and policy.timestamp_type is not TimestampType.LOG_APPEND_TIME
    ]


def _brokers(sources: LiveSources) -> list[BrokerState]:
    conditions = {each.condition for each in sources.conditions()}
    connections = Counter(session.route_label for session in sources.sessions)
    shown: list[BrokerState] = [
        {
            "name": _BOOTSTRAP,
            "upstream": ", ".join(map(str, sources.bootstrap[:10])),
            "listener": None,
            "state": "unreachable" if conditions & _NO_BROKER else "reachable",
            "connections": connections[_BOOTSTRAP],
        }
    ]
    for node_id, upstream, listener, state in sources.brokers()[:_MAX_BROKERS]:
        name = f"broker {node_id}"
        shown.append(
            {
                "name": name,
                "upstream": "unknown" if upstream is None else str(upstream),
                "listener": listener,
                "state": state,
                "connections": connections[name],
            }
        )
    return shown
