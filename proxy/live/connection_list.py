"""Client connections as a person sees them: who, where, how far, and what each waits for."""

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter

from sluicegate.proxy.live.live_state import Connections, ConnectionState
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.scheduling.switch_interval import ShortTurns
from sluicegate.proxy.session.lifecycle import Stage
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.session import Session

MAX_LISTED = 100
_MOST_LOOKED_AT = 2000

STATES = {
    Stage.CONNECTING: "connecting",
    Stage.OPEN: "open",
    Stage.DRAINING: "draining",
    Stage.LEAVING: "leaving",
    Stage.GOODBYE: "leaving",
    Stage.ENDED: "ended",
}
WAITS = {
    PauseReason.CONNECTING: "the connection to the broker",
    PauseReason.OTHER_SIDE_FULL: "the broker to read",
    PauseReason.RESPONSES_UNREAD: "the client to read its answers",
    PauseReason.TURN_OVER: "its turn",
    PauseReason.REJECTIONS: "answers to what was rejected",
    PauseReason.VALIDATING: "a validation",
    PauseReason.QUARANTINING: "bad records to be kept",
    PauseReason.ASKING: "a topic's name",
    PauseReason.SETTINGS: "a topic's settings",
    PauseReason.MEMORY: "memory",
    PauseReason.IN_FLIGHT: "answers to what is in flight",
    PauseReason.IN_FLIGHT_IN_ALL: "answers to what others have in flight",
    PauseReason.QUOTA: "its quota",
    PauseReason.QUOTA_TURN: "its turn under a quota",
    PauseReason.DRAINING: "the end",
    PauseReason.TURNED_AWAY: "its end: it asked for what was never offered",
}


def connections_of(sessions: Iterable[Session], max_listed: int = MAX_LISTED) -> Connections:
    """Of the first two thousand those that wait for something, then others, from each address in turn; gives way to the
    event loop.
    """
    turns = ShortTurns()
    by_state: Counter[str] = Counter()
    looked_at: list[tuple[bool, int, Session, list[str]]] = []
    by_address: Counter[tuple[bool, str]] = Counter()
    count = 0
    for session in sessions:
        count += 1
        by_state[STATES[session.stage]] += 1
        if count <= _MOST_LOOKED_AT:
            waits_for = [WAITS[hold] for hold in session.client.pause_reasons]
            place = not waits_for, session.identity.peer.rpartition(":")[0]
            looked_at.append((place[0], by_address[place], session, waits_for))
            by_address[place] += 1
        turns.give_way()
    looked_at.sort(key=itemgetter(0, 1))
    listed = [_state_of(session, waits_for) for _, _, session, waits_for in looked_at[:max_listed]]
    return {"count": count, "by_state": dict(by_state), "listed": listed}


def _state_of(session: Session, waits_for: list[str]) -> ConnectionState:
    who = session.identity
    software = " ".join(text for text in (who.software_name, who.software_version) if text is not None)
    return {
        "peer": cut(who.peer),
        "client_id": None if who.client_id is None else cut(who.client_id),
        "software": cut(software) if software else None,
        "principal": None if who.principal is None else cut(who.principal),
        "broker": session.leads_to,
        "state": STATES[session.stage],
        "pause_reasons": waits_for,
        "in_flight": len(session.queue),
        "received": session.client.bytes_in,
    }
