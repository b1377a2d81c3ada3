"""The JSON form of a proxy's live state (docs/web-ui.md).

The states of several proxies can be merged into one. Names from clients are truncated when they are stored
(`sluicegate.proxy.reporting.bounded_text`).
"""

from typing import Any, TypedDict

from sluicegate.proxy.live.conditions import ConditionState, StatusState
from sluicegate.proxy.reporting.events.violation_event import OwnerState
from sluicegate.proxy.reporting.metrics.broker_errors import BrokerErrorState


class History(TypedDict):
    """Counts for each second, starting at `begin` (Unix time).

    `size` is in bytes. `rejected` and `observed` count batches.
    """

    begin: int
    requests: list[int]
    records: list[int]
    size: list[int]
    rejected: list[int]
    rejected_records: list[int]
    observed: list[int]


class ViolationGroupState(TypedDict):
    """One client's violations in one topic for one reason. `example` is the newest event (docs/violations.md)."""

    client_id: str | None
    topic: str | None
    reason: str
    outcome: str
    mode: str
    changes: list[str]
    copies: str | None
    batches: int
    bad_records: int
    first_ms: int
    last_ms: int
    example: dict[str, Any]


class TrafficRates(TypedDict):
    """Rates per second of validated batches, their records and bytes, and batches with violations."""

    batches: float
    records: float
    size: float
    violations: float


class TrafficState(TypedDict):
    """A topic or a client with traffic.

    The name is None for clients without a client id. The times of the first and the last traffic (Unix time, ms) are
    exact to 5 s. The rates are those of the last complete bin of 10 s. They are None until a bin is complete.
    """

    name: str | None
    first_ms: int
    last_ms: int
    rates: TrafficRates | None


class TrafficHistory(TypedDict):
    """Counts for bins of `bin_seconds`, starting at `begin` (Unix time), with the same columns as TrafficRates."""

    begin: int
    bin_seconds: int
    batches: list[int]
    records: list[int]
    size: list[int]
    violations: list[int]


class Bounds(TypedDict):
    """The bounds in force, in ms. `name` is a pattern in the configuration, `defaults`, or a topic."""

    name: str
    before_ms: int
    after_ms: int


class Distances(TypedDict):
    """The number of batches for each distance between their timestamps and now, in steps.

    There are separate counts for valid batches with past timestamps, valid batches with future timestamps, and batches
    with bad timestamps.
    """

    behind: dict[str, int]
    ahead: dict[str, int]
    rejected_behind: dict[str, int]
    rejected_ahead: dict[str, int]


class ConnectionState(TypedDict):
    """A client connection with its client, owner, broker, state, and the reason for its pause."""

    client_address: str
    client_id: str | None
    software: str | None
    principal: str | None
    owner: OwnerState | None
    broker: str
    state: str
    pause_reasons: list[str]
    in_flight: int
    received: int


class Connections(TypedDict):
    """The number of connections per state, and a list of some connections, paused ones first."""

    count: int
    by_state: dict[str, int]
    listed: list[ConnectionState]


class BrokerState(TypedDict):
    """A broker with its addresses, its state and the number of connections to it.

    The addresses are its own and the advertised one. The state is `reachable`, `unreachable` or `not checked`.
    """

    name: str
    upstream: str
    listener: str | None
    state: str
    connections: int


class FleetProxy(TypedDict):
    """One proxy of a fleet, with its admin address, its state (`unreachable` if it does not respond) and the reason.

    The fields from `name` on come from its newest state. They are None if the proxy has never responded.
    """

    address: str
    state: str
    reason: str | None
    seen_ms: int | None
    name: str | None
    version: str | None
    cluster_id: str | None
    since_ms: int | None
    conditions: list[ConditionState]
    connections: int | None
    totals: dict[str, int] | None
    rates: dict[str, float] | None


class LiveState(StatusState):
    """The whole state.

    `since_ms` is the start of the oldest proxy in Unix time. `proxies` is the number of processes. `name` is the
    proxy's name, `HOST:PORT`. `traffic` is the history of the topic or client in the query. `fleet` lists the proxies
    of `sluicegate fleet`, and is empty for a single proxy.
    """

    time_ms: int
    since_ms: int
    version: str
    proxies: int
    name: str
    cluster_id: str | None
    totals: dict[str, int]
    history: History
    violation_groups: list[ViolationGroupState]
    other_violations: int
    violations: list[dict[str, Any]]
    topics: list[TrafficState]
    clients: list[TrafficState]
    traffic: TrafficHistory | None
    distances: Distances
    bounds: list[Bounds]
    connections: Connections
    brokers: list[BrokerState]
    broker_errors: list[BrokerErrorState]
    fleet: list[FleetProxy]
