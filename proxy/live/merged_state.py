"""Merges the live states of several workers, or of several proxies, into one."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from sluicegate.proxy.live.conditions import status_of_several
from sluicegate.proxy.live.connection_list import MAX_LISTED
from sluicegate.proxy.live.flow_history import SECONDS, Flow
from sluicegate.proxy.live.live_state import (
    Bounds,
    BrokerState,
    Connections,
    Distances,
    History,
    LiveState,
    TrafficRates,
    TrafficState,
    ViolationGroupState,
)
from sluicegate.proxy.live.live_view import MAX_VIOLATIONS
from sluicegate.proxy.live.traffic import MAX_CLIENTS, MAX_TOPICS, sum_of_histories
from sluicegate.proxy.live.violation_groups import MAX_GROUPS
from sluicegate.proxy.reporting.metrics.broker_errors import BrokerErrorState

_BROKER_STATES = ("unreachable", "reachable", "not checked")
"""A broker's states in order of precedence.

A state that one process has found overrides `not checked` from the others.
"""


def merged_state(states: Sequence[LiveState]) -> LiveState:
    """Merge one or more states."""
    if len(states) == 1:
        return states[0]
    violation_groups, other = _violation_groups(states)
    return {
        "time_ms": max(state["time_ms"] for state in states),
        "since_ms": min(state["since_ms"] for state in states),
        "version": ", ".join(sorted({state["version"] for state in states})),
        "proxies": sum(state["proxies"] for state in states),
        "name": ", ".join(sorted({state["name"] for state in states})),
        "cluster_id": ", ".join(sorted({state["cluster_id"] or "" for state in states} - {""})) or None,
        **status_of_several(states),
        "totals": _sum(state["totals"] for state in states),
        "history": _histories([state["history"] for state in states]),
        "violation_groups": violation_groups,
        "other_violations": other,
        "violations": _violations(states),
        "topics": _traffic((topic for state in states for topic in state["topics"]), MAX_TOPICS),
        "clients": _traffic((client for state in states for client in state["clients"]), MAX_CLIENTS),
        "traffic": sum_of_histories([state["traffic"] for state in states if state["traffic"] is not None]),
        "distances": _distances(states),
        "bounds": _bounds(states),
        "connections": _connections([state["connections"] for state in states]),
        "brokers": _brokers(states),
        "broker_errors": _broker_errors(states),
        "fleet": [],
    }


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def _histories(histories: Sequence[History]) -> History:
    """Return the sum for each second. A state that started later counts as zero for earlier seconds."""
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


def _violation_groups(states: Sequence[LiveState]) -> tuple[list[ViolationGroupState], int]:
    found: dict[tuple[Any, ...], ViolationGroupState] = {}
    for state in states:
        for group in state["violation_groups"]:
            did = (group["outcome"], group["mode"], *group["changes"], group["copies"])
            key = (did, group["client_id"], group["topic"], group["reason"])
            before = found.get(key)
            found[key] = group if before is None else _both(before, group)
    ordered = sorted(found.values(), key=lambda group: -group["batches"])
    cut_off = sum(group["batches"] for group in ordered[MAX_GROUPS:])
    return ordered[:MAX_GROUPS], cut_off + sum(state["other_violations"] for state in states)


def _both(one: ViolationGroupState, other: ViolationGroupState) -> ViolationGroupState:
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


def _traffic(several: Iterable[TrafficState], most: int) -> list[TrafficState]:
    found: dict[str | None, TrafficState] = {}
    for each in several:
        known = found.get(each["name"])
        if known is None:
            found[each["name"]] = each
            continue
        found[each["name"]] = {
            "name": each["name"],
            "first_ms": min(known["first_ms"], each["first_ms"]),
            "last_ms": max(known["last_ms"], each["last_ms"]),
            "rates": _rates(known["rates"], each["rates"]),
        }
    return sorted(found.values(), key=lambda each: each["last_ms"])[-most:]


def _rates(one: TrafficRates | None, other: TrafficRates | None) -> TrafficRates | None:
    if one is None or other is None:
        return one or other
    return {
        "batches": one["batches"] + other["batches"],
        "records": one["records"] + other["records"],
        "size": one["size"] + other["size"],
        "violations": one["violations"] + other["violations"],
    }


def _distances(states: Sequence[LiveState]) -> Distances:
    several = [state["distances"] for state in states]
    return {
        "behind": _sum(each["behind"] for each in several),
        "ahead": _sum(each["ahead"] for each in several),
        "rejected_behind": _sum(each["rejected_behind"] for each in several),
        "rejected_ahead": _sum(each["rejected_ahead"] for each in several),
    }


def _bounds(states: Sequence[LiveState]) -> list[Bounds]:
    """Return the bounds for each name, from the first state that contains it: all workers have the same bounds."""
    found: dict[str, Bounds] = {}
    for state in states:
        for bounds in state["bounds"]:
            found.setdefault(bounds["name"], bounds)
    return list(found.values())


def _connections(several: Sequence[Connections]) -> Connections:
    listed = [one for connections in several for one in connections["listed"]]
    listed.sort(key=lambda one: not one["pause_reasons"])
    return {
        "count": sum(connections["count"] for connections in several),
        "by_state": _sum(connections["by_state"] for connections in several),
        "listed": listed[:MAX_LISTED],
    }


def _broker_errors(states: Sequence[LiveState]) -> list[BrokerErrorState]:
    found: dict[tuple[str, str, str], BrokerErrorState] = {}
    for each in (error for state in states for error in state["broker_errors"]):
        key = each["client_id"], each["api"], each["error"]
        before = found.get(key)
        if before is None:
            found[key] = each
            continue
        responses, last_ms = before["responses"] + each["responses"], max(before["last_ms"], each["last_ms"])
        found[key] = {**each, "responses": responses, "last_ms": last_ms}
    return sorted(found.values(), key=lambda each: -each["responses"])


def _brokers(states: Sequence[LiveState]) -> list[BrokerState]:
    found: dict[tuple[str, str], BrokerState] = {}
    for state in states:
        for broker in state["brokers"]:
            key = broker["name"], broker["upstream"]
            before = found.get(key)
            if before is None:
                found[key] = broker
                continue
            connections = broker["connections"] + before["connections"]
            known = min(broker["state"], before["state"], key=_BROKER_STATES.index)
            found[key] = {**broker, "connections": connections, "state": known}
    return list(found.values())
