"""Lists client connections for people: the client, its address, its state, and the reason for a pause."""

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter

from sluicegate.proxy.live.live_state import Connections, ConnectionState
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.events.violation_event import owner_as_shown
from sluicegate.proxy.scheduling.short_turns import ShortTurns
from sluicegate.proxy.session.handlers.session import Session
from sluicegate.proxy.session.lifecycle import Stage
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.validation.requests.name_pattern import OwnedClients, owner_among

MAX_LISTED = 500
_MOST_EXAMINED = 2000

STATES = {
    Stage.CONNECTING: "connecting",
    Stage.OPEN: "open",
    Stage.DRAINING: "draining",
    Stage.HALF_CLOSED: "half closed",
    Stage.CLOSING: "closing",
    Stage.ENDED: "ended",
}
PAUSES = {
    PauseReason.CONNECTING: "connecting to the broker",
    PauseReason.PEER_BACKPRESSURE: "broker not reading",
    PauseReason.CLIENT_NOT_READING: "client not reading",
    PauseReason.FAIR_SHARE: "fair share used",
    PauseReason.REJECTIONS: "pending rejections",
    PauseReason.VALIDATING: "validation",
    PauseReason.QUARANTINING: "quarantine write",
    PauseReason.TOPIC_NAMES: "topic name",
    PauseReason.STORED_TIMES: "times of earlier batches",
    PauseReason.SETTINGS: "topic settings",
    PauseReason.MEMORY: "memory",
    PauseReason.IN_FLIGHT: "in-flight requests",
    PauseReason.IN_FLIGHT_TOTAL: "in-flight requests of all clients",
    PauseReason.QUOTA: "quota",
    PauseReason.QUOTA_QUEUE: "quota queue",
    PauseReason.DRAINING: "closing",
    PauseReason.UNSUPPORTED_API: "closing: unsupported API",
}


def connections_of(
    sessions: Iterable[Session], owners: tuple[OwnedClients, ...], max_listed: int = MAX_LISTED
) -> Connections:
    """Return the number of connections per state, and a list of at most 2000 connections.

    The list starts with paused connections, followed by a fair share for each address. `owners` contains the clients'
    owners. Lets the event loop's thread run between connections.
    """
    turns = ShortTurns()
    by_state: Counter[str] = Counter()
    examined: list[tuple[bool, int, Session, list[str]]] = []
    by_address: Counter[tuple[bool, str]] = Counter()
    count = 0
    for session in sessions:
        count += 1
        by_state[STATES[session.stage]] += 1
        if count <= _MOST_EXAMINED:
            pause_reasons = [PAUSES[reason] for reason in session.client.pause_reasons]
            place = not pause_reasons, session.identity.peer.rpartition(":")[0]
            examined.append((place[0], by_address[place], session, pause_reasons))
            by_address[place] += 1
        turns.give_way()
    examined.sort(key=itemgetter(0, 1))
    listed: list[ConnectionState] = []
    for _, _, session, pause_reasons in examined[:max_listed]:
        listed.append(_state_of(session, pause_reasons, owners))
        turns.give_way()
    return {"count": count, "by_state": dict(by_state), "listed": listed}


def _state_of(session: Session, pause_reasons: list[str], owners: tuple[OwnedClients, ...]) -> ConnectionState:
    client = session.identity
    owner = owner_among(owners, client.for_rules())
    software = " ".join(text for text in (client.software_name, client.software_version) if text is not None)
    return {
        "client_address": cut(client.peer),
        "client_id": None if client.client_id is None else cut(client.client_id),
        "software": cut(software) if software else None,
        "principal": None if client.principal is None else cut(client.principal),
        "owner": None if owner is None else owner_as_shown(owner),
        "broker": session.route_label,
        "state": STATES[session.stage],
        "pause_reasons": pause_reasons,
        "in_flight": len(session.queue),
        "received": session.client.bytes_in,
    }
