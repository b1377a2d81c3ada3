"""Client connections as a person sees them: who, where, how far, and what each waits for."""

from collections import Counter
from collections.abc import Iterable
from itertools import islice

from sluicegate.proxy.judgement.short_turns import ShortTurns
from sluicegate.proxy.live.live_state import Connections, ConnectionState
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.session.hold import Hold
from sluicegate.proxy.session.life import Stage
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
    Hold.CONNECTING: "the connection to the broker",
    Hold.OTHER_SIDE_FULL: "the broker to read",
    Hold.ANSWERS_UNREAD: "the client to read its answers",
    Hold.TURN_OVER: "its turn",
    Hold.REFUSALS: "answers to what was refused",
    Hold.JUDGING: "a judgement",
    Hold.QUARANTINING: "bad records to be kept",
    Hold.ASKING: "a topic's name",
    Hold.SETTINGS: "a topic's settings",
    Hold.MEMORY: "memory",
    Hold.IN_FLIGHT: "answers to what is in flight",
    Hold.IN_FLIGHT_IN_ALL: "answers to what others have in flight",
    Hold.QUOTA: "its quota",
    Hold.QUOTA_TURN: "its turn under a quota",
    Hold.DRAINING: "the end",
    Hold.TURNED_AWAY: "its end: it asked for what was never offered",
}


def connections_of(sessions: Iterable[Session], max_listed: int = MAX_LISTED) -> Connections:
    """Of the first two thousand those that wait for something, then others; gives way to the event loop."""
    turns = ShortTurns()
    by_state: Counter[str] = Counter()
    waiting: list[ConnectionState] = []
    moving: list[ConnectionState] = []
    count = 0
    for session in sessions:
        count += 1
        by_state[STATES[session.stage]] += 1
        if count <= _MOST_LOOKED_AT and len(waiting) < max_listed:
            waits_for = [WAITS[hold] for hold in session.client.holds]
            if waits_for:
                waiting.append(_state_of(session, waits_for))
            elif len(moving) < max_listed:
                moving.append(_state_of(session, waits_for))
        turns.give_way()
    listed = list(islice((*waiting, *moving), max_listed))
    return {"count": count, "by_state": dict(by_state), "listed": listed}


def _state_of(session: Session, waits_for: list[str]) -> ConnectionState:
    who = session.identity
    software = " ".join(text for text in (who.software_name, who.software_version) if text is not None)
    return {
        "peer": cut(who.peer),
        "client_id": None if who.client_id is None else cut(who.client_id),
        "software": cut(software) if software else None,
        "principal": None if who.principal is None else cut(who.principal),
        "leads_to": session.leads_to,
        "state": STATES[session.stage],
        "waits_for": waits_for,
        "in_flight": len(session.queue),
        "received": session.client.bytes_in,
    }
