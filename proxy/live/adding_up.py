"""Several proxies as one: workers of one process, or proxies at several addresses."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from sluicegate.proxy.live.connection_list import MAX_LISTED
from sluicegate.proxy.live.flow_history import SECONDS, Flow
from sluicegate.proxy.live.live_state import (
    Bounds,
    BrokerState,
    Connections,
    Distances,
    History,
    LiveState,
    OffenceState,
)
from sluicegate.proxy.live.live_view import MAX_VIOLATIONS
from sluicegate.proxy.live.offences import MAX_OFFENCES


def added_up(states: Sequence[LiveState]) -> LiveState:
    """What all of them show together; there is at least one."""
    if len(states) == 1:
        return states[0]
    offences, other = _offences(states)
    return {
        "time_ms": max(state["time_ms"] for state in states),
        "since_ms": min(state["since_ms"] for state in states),
        "version": ", ".join(sorted({state["version"] for state in states})),
        "proxies": sum(state["proxies"] for state in states),
        "trouble": list(dict.fromkeys(text for state in states for text in state["trouble"])),
        "in_all": _sum(state["in_all"] for state in states),
        "history": _histories([state["history"] for state in states]),
        "offences": offences,
        "other_offences": other,
        "violations": _violations(states),
        "distances": _distances(states),
        "bounds": _bounds(states),
        "connections": _connections([state["connections"] for state in states]),
        "brokers": _brokers(states),
    }


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _histories(histories: Sequence[History]) -> History:
    """Second by second; those that have only begun have nothing before."""
    some = [history for history in histories if history["requests"]]
    if not some:
        return histories[0]
    end = max(history["begin"] + len(history["requests"]) for history in some)
    begin = max(min(history["begin"] for history in some), end - SECONDS)
    rows: dict[str, list[int]] = {}
    for name in Flow._fields:
        row = [0] * (end - begin)
        for history in some:
            for second, count in enumerate(history[name], history["begin"]):  # type: ignore[literal-required]
                if second >= begin:
                    row[second - begin] += count
        rows[name] = row
    return {"begin": begin, **rows}  # type: ignore[typeddict-item]  # the names are History's


def _offences(states: Sequence[LiveState]) -> tuple[list[OffenceState], int]:
    found: dict[tuple[Any, ...], OffenceState] = {}
    for state in states:
        for offence in state["offences"]:
            key = (offence["mode"], offence["client_id"], offence["topic"], offence["reason"])
            before = found.get(key)
            found[key] = offence if before is None else _both(before, offence)
    ordered = sorted(found.values(), key=lambda offence: -offence["batches"])
    cut_off = sum(offence["batches"] for offence in ordered[MAX_OFFENCES:])
    return ordered[:MAX_OFFENCES], cut_off + sum(state["other_offences"] for state in states)


def _both(one: OffenceState, other: OffenceState) -> OffenceState:
    newer = one if one["last_ms"] >= other["last_ms"] else other
    return {
        **newer,
        "batches": one["batches"] + other["batches"],
        "bad_records": one["bad_records"] + other["bad_records"],
        "first_ms": min(one["first_ms"], other["first_ms"]),
    }


def _violations(states: Sequence[LiveState]) -> list[dict[str, Any]]:
    found = [violation for state in states for violation in state["violations"]]
    return sorted(found, key=lambda violation: str(violation["time"]))[-MAX_VIOLATIONS:]


def _distances(states: Sequence[LiveState]) -> Distances:
    several = [state["distances"] for state in states]
    return {
        "behind": _sum(each["behind"] for each in several),
        "ahead": _sum(each["ahead"] for each in several),
        "rejected_behind": _sum(each["rejected_behind"] for each in several),
        "rejected_ahead": _sum(each["rejected_ahead"] for each in several),
    }


def _bounds(states: Sequence[LiveState]) -> list[Bounds]:
    """The first that names a topic; workers hold the same."""
    found: dict[str, Bounds] = {}
    for state in states:
        for bounds in state["bounds"]:
            found.setdefault(bounds["name"], bounds)
    return list(found.values())


def _connections(several: Sequence[Connections]) -> Connections:
    listed = [one for connections in several for one in connections["listed"]]
    listed.sort(key=lambda one: not one["waits_for"])
    return {
        "count": sum(connections["count"] for connections in several),
        "by_state": _sum(connections["by_state"] for connections in several),
        "listed": listed[:MAX_LISTED],
    }


def _brokers(states: Sequence[LiveState]) -> list[BrokerState]:
    found: dict[tuple[str, str], BrokerState] = {}
    for state in states:
        for broker in state["brokers"]:
            key = broker["name"], broker["upstream"]
            before = found.get(key)
            connections = broker["connections"] + (0 if before is None else before["connections"])
            found[key] = {**broker, "connections": connections}
    return list(found.values())
