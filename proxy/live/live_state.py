"""What is shown of a proxy at one moment, as JSON has it (docs/page.md); several proxies' are added up to one.

What clients name themselves is cut where it is kept (`sluicegate.proxy.reporting.bounded_text`).
"""

from typing import Any, TypedDict


class History(TypedDict):
    """Counts for each second from `begin` (Unix time) on; `size` in bytes, `rejected` and `told` in batches."""

    begin: int
    requests: list[int]
    records: list[int]
    size: list[int]
    rejected: list[int]
    rejected_records: list[int]
    observed: list[int]


class ViolationGroupState(TypedDict):
    """How often one client broke one thing in one topic; `example` is the newest event (docs/violations.md)."""

    client_id: str | None
    topic: str | None
    reason: str
    mode: str
    batches: int
    bad_records: int
    first_ms: int
    last_ms: int
    example: dict[str, Any]


class Bounds(TypedDict):
    """What holds for topics named so; ms. `name`: a pattern of the file, `defaults`, or a topic's own name."""

    name: str
    before_ms: int
    after_ms: int


class Distances(TypedDict):
    """How many batches reach so far from now, by the step that the distance lies in: those that were good behind and
    ahead, and those that were rejected for their time.
    """

    behind: dict[str, int]
    ahead: dict[str, int]
    rejected_behind: dict[str, int]
    rejected_ahead: dict[str, int]


class ConnectionState(TypedDict):
    """One client connection: who, where it leads, how far it has come, and what it waits for."""

    peer: str
    client_id: str | None
    software: str | None
    principal: str | None
    broker: str
    state: str
    pause_reasons: list[str]
    in_flight: int
    received: int


class Connections(TypedDict):
    """All, by state; listed are some, those that wait first."""

    count: int
    by_state: dict[str, int]
    listed: list[ConnectionState]


class BrokerState(TypedDict):
    """One broker: where it is, where clients find it, and how many connections lead there."""

    name: str
    upstream: str
    listener: str | None
    connections: int


class LiveState(TypedDict):
    """All of it. `since_ms`: when the oldest of the proxies began; `trouble`: what is to be mended."""

    time_ms: int
    since_ms: int
    version: str
    proxies: int
    problems: list[str]
    totals: dict[str, int]
    history: History
    violation_groups: list[ViolationGroupState]
    other_violations: int
    violations: list[dict[str, Any]]
    distances: Distances
    bounds: list[Bounds]
    connections: Connections
    brokers: list[BrokerState]
