"""Reads many proxies and shows them as one (`sluicegate fleet`).

A thread reads each proxy, at most once a second, with limits on time and size. A proxy that does not respond delays the
others by at most a second, and is listed as unreachable. After ten seconds, its figures are removed from the sums.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from json import dumps
from threading import Lock
from typing import Any

from sluicegate.config.values.address import HostPort
from sluicegate.config.values.password import PasswordUnreadable
from sluicegate.proxy.live.conditions import ConditionState
from sluicegate.proxy.live.flow_history import Flow, rates_of
from sluicegate.proxy.live.live_snapshot import LiveQuery
from sluicegate.proxy.live.live_state import FleetProxy, History, LiveState, TrafficHistory
from sluicegate.proxy.live.merged_state import merged_state
from sluicegate.proxy.live.traffic import sum_of_histories
from sluicegate.proxy.reporting.build_info import VERSION
from sluicegate.proxy.watching.admin_client import (
    StateUnavailable,
    read_history,
    read_policy,
    read_policy_changes,
    read_state,
)

MAX_PROXIES = 200
MAX_BYTES = 8 << 20
_EVERY_SECONDS = 1.0
_WAIT_SECONDS = 1.0
_STALE_SECONDS = 10.0
_FIND_SECONDS = 30.0
_AT_ONCE = 64
_MOST_CHANGES = 20
UNREACHABLE = "unreachable"
"""The state of a proxy that has not responded for 10 s, or has never responded."""
_ADVICE = "Check the proxy's process, its network and the fleet's token for it."

TokenOf = Callable[[HostPort], str | None]
"""Returns the token for a proxy, read from its file. Raises PasswordUnreadable."""


@dataclass(slots=True)
class _Proxy:
    """What is known about one proxy.

    Times are in monotonic seconds. `since_ms` is the Unix time at which it became unreachable.
    """

    address: HostPort
    state: LiveState | None = None
    read_at: float = -_STALE_SECONDS
    asked_at: float = -_EVERY_SECONDS
    reason: str | None = "no response yet"
    since_ms: int = 0
    reading: "Future[LiveState] | None" = None


class Fleet:
    """The proxies at the addresses that `find` returns. Thread-safe."""

    def __init__(
        self,
        find: Callable[[], Sequence[HostPort]],
        token_of: TokenOf,
        read: Callable[[HostPort, str | None, int], LiveState] = read_state,
        seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """`find` may block, and is called every 30 s. It raises OSError if it cannot find the proxies."""
        self._find = find
        self._token_of = token_of
        self._read = read
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(_AT_ONCE, "fleet")
        self._looking = Lock()
        self._proxies: dict[HostPort, _Proxy] = {}
        self._finding: Future[Sequence[HostPort]] | None = None
        self._found_at = -_FIND_SECONDS
        self._not_found: str | None = None

    def close(self) -> None:
        """Stop reading."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def live_state(self, query: LiveQuery) -> LiveState:
        """Return the sum of the proxies that respond, and each proxy's own state."""
        with self._looking:
            self._look_for_proxies()
            self._look_at_proxies()
            state = self._summed(query)
        if query.history_of is None:
            return state
        addresses = list(self._proxies)
        found = self._threads.map(partial(self._history_of, query.history_of), addresses)
        return {**state, "traffic": sum_of_histories([history for history in found if history is not None])}

    def newest_states(self) -> list[tuple[FleetProxy, float | None]]:
        """Return each proxy, with the seconds since its newest state was read, or None if it has never responded."""
        with self._looking:
            self._look_for_proxies()
            self._look_at_proxies()
            now = self._seconds()
            return [
                (self._shown(proxy), None if proxy.state is None else now - proxy.read_at)
                for proxy in self._proxies.values()
            ]

    def _summed(self, query: LiveQuery) -> LiveState:
        fresh = [proxy for proxy in self._proxies.values() if self._is_fresh(proxy)]
        merged = merged_state(
            [_of_proxy(proxy.address, proxy.state) for proxy in fresh if proxy.state is not None] or [_nothing()]
        )
        unreachable = [proxy for proxy in self._proxies.values() if proxy not in fresh]
        conditions = [_unreachable(str(proxy.address), str(proxy.reason), proxy.since_ms) for proxy in unreachable]
        if self._not_found is not None:
            conditions.append(_unreachable("", self._not_found, _now_ms()))
        state = merged["state"] if fresh else "not serving"
        return {
            **merged,
            # The oldest time, so that a reader that requests later changes misses no proxy's changes.
            "time_ms": min((proxy.state["time_ms"] for proxy in fresh if proxy.state is not None), default=_now_ms()),
            "state": "needs attention" if conditions and state == "serving" else state,
            "conditions": conditions + merged["conditions"],
            "history": _newest(merged["history"], query.seconds),
            "violations": [each for each in merged["violations"] if _time_ms(each) > query.after_ms],
            "topics": [each for each in merged["topics"] if each["last_ms"] > query.after_ms],
            "clients": [each for each in merged["clients"] if each["last_ms"] > query.after_ms],
            "violation_groups": merged["violation_groups"][: query.violation_groups],
            "fleet": [self._shown(proxy) for proxy in self._proxies.values()],
        }

    def explain(self, topic: str) -> dict[str, Any]:
        """Return a topic's policy.

        If the proxies differ, return only lines, with the proxies' names before each policy.
        """
        found: list[tuple[dict[str, Any], list[str]]] = []
        addresses = list(self._proxies)
        for address, policy in zip(
            addresses, self._threads.map(partial(self._policy_of, topic), addresses), strict=True
        ):
            same = next((names for known, names in found if known == policy), None)
            if same is None:
                found.append((policy, [str(address)]))
            else:
                same.append(str(address))
        if len(found) == 1:
            return found[0][0]
        lines = [line for policy, names in found for line in (f"{', '.join(names)}:", *policy["lines"])]
        return {"topic": topic, "owner": None, "lines": lines, "effective": [], "source": None}

    def policy_changes(self) -> list[dict[str, Any]]:
        """Return all proxies' latest policy changes, newest first.

        Equal changes are combined into one object. `proxies` contains the addresses. A proxy that does not respond, or
        has an older version, contributes no changes.
        """
        found: dict[str, dict[str, Any]] = {}
        addresses = list(self._proxies)
        for address, changes in zip(addresses, self._threads.map(self._changes_of, addresses), strict=True):
            for change in changes:
                same = dumps({key: value for key, value in change.items() if key != "time_ms"}, sort_keys=True)
                proxies = [*found.get(same, {}).get("proxies", ()), str(address)]
                time_ms = max(change["time_ms"], found.get(same, change)["time_ms"])
                found[same] = {**change, "time_ms": time_ms, "proxies": proxies}
        return sorted(found.values(), key=lambda change: -int(change["time_ms"]))[:_MOST_CHANGES]

    def _history_of(self, asked: tuple[str, str | None], address: HostPort) -> TrafficHistory | None:
        try:
            return read_history(address, self._token_of(address), *asked)
        except (StateUnavailable, PasswordUnreadable):
            return None

    def _changes_of(self, address: HostPort) -> list[dict[str, Any]]:
        try:
            return read_policy_changes(address, self._token_of(address))
        except (StateUnavailable, PasswordUnreadable):
            return []

    def _look_for_proxies(self) -> None:
        """Add new proxies, and remove those that no longer exist, every 30 s."""
        if self._finding is None and self._seconds() - self._found_at >= _FIND_SECONDS:
            self._finding = self._threads.submit(self._find)
        if self._finding is None:
            return
        wait([self._finding], _WAIT_SECONDS)
        if not self._finding.done():
            return
        try:
            addresses = list(self._finding.result())[:MAX_PROXIES]
        except OSError as error:
            self._not_found = f"the proxies' addresses cannot be resolved: {error.strerror or error}"
        else:
            self._not_found = None
            self._proxies = {address: self._proxies.get(address) or _Proxy(address) for address in addresses}
        self._finding, self._found_at = None, self._seconds()

    def _look_at_proxies(self) -> None:
        now = self._seconds()
        for proxy in self._proxies.values():
            if proxy.reading is None and now - proxy.asked_at >= _EVERY_SECONDS:
                proxy.asked_at = now
                proxy.reading = self._threads.submit(self._read_one, proxy.address)
        wait([proxy.reading for proxy in self._proxies.values() if proxy.reading is not None], _WAIT_SECONDS)
        for proxy in self._proxies.values():
            if proxy.reading is not None and proxy.reading.done():
                self._take(proxy, proxy.reading)
                proxy.reading = None

    def _read_one(self, address: HostPort) -> LiveState:
        state = self._read(address, self._token_of(address), MAX_BYTES)
        try:
            merged_state([state, _nothing()])
            rates_of(state["history"])
        except Exception as error:  # a proxy with another version must not disturb the others' sums
            raise StateUnavailable(f"the state has another format ({type(error).__name__})") from error
        return state

    def _policy_of(self, topic: str, address: HostPort) -> dict[str, Any]:
        try:
            return read_policy(address, self._token_of(address), topic)
        except (StateUnavailable, PasswordUnreadable) as error:
            return {"topic": topic, "lines": [f"not available: {error}"], "effective": [], "source": None}

    def _take(self, proxy: _Proxy, reading: "Future[LiveState]") -> None:
        try:
            proxy.state = reading.result()
        except (StateUnavailable, PasswordUnreadable) as error:
            proxy.since_ms = proxy.since_ms or _now_ms()
            proxy.reason = str(error)
        else:
            proxy.read_at, proxy.reason, proxy.since_ms = self._seconds(), None, 0

    def _is_fresh(self, proxy: _Proxy) -> bool:
        return proxy.state is not None and self._seconds() - proxy.read_at < _STALE_SECONDS

    def _shown(self, proxy: _Proxy) -> FleetProxy:
        state, is_fresh = proxy.state, self._is_fresh(proxy)
        return {
            "address": str(proxy.address),
            "state": state["state"] if state is not None and is_fresh else UNREACHABLE,
            "reason": proxy.reason,
            "seen_ms": None if state is None else state["time_ms"],
            "name": None if state is None else state["name"],
            "version": None if state is None else state["version"],
            "cluster_id": None if state is None else state["cluster_id"],
            "since_ms": None if state is None else state["since_ms"],
            "conditions": state["conditions"] if state is not None and is_fresh else [],
            "connections": state["connections"]["count"] if state is not None and is_fresh else None,
            "totals": None if state is None else state["totals"],
            "rates": rates_of(state["history"])._asdict() if state is not None and is_fresh else None,
        }


def _of_proxy(address: HostPort, state: LiveState) -> LiveState:
    """Return a proxy's state with its address added to the conditions and to the ids of violations."""
    conditions: list[ConditionState] = [
        {**each, "detail": f"{address}: {each['detail']}"} for each in state["conditions"]
    ]
    violations = [{**each, "id": f"{address} {each['id']}"} for each in state["violations"]]
    return {**state, "conditions": conditions, "violations": violations}


def _unreachable(address: str, reason: str, since_ms: int) -> ConditionState:
    return {
        "condition": "proxy_unreachable",
        "state": "needs attention",
        "subject": address,
        "detail": f"{address}: {reason}" if address else reason,
        "since_ms": since_ms or _now_ms(),
        "advice": _ADVICE,
    }


def _newest(history: History, seconds: int) -> History:
    skipped = max(0, len(history["requests"]) - seconds)
    rows = {name: history[name][skipped:] for name in Flow._fields}  # type: ignore[literal-required]
    return {"begin": history["begin"] + skipped, **rows}  # type: ignore[typeddict-item]


def _time_ms(violation: dict[str, Any]) -> int:
    return round(datetime.fromisoformat(violation["time"]).timestamp() * 1000)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _nothing() -> LiveState:
    """Return the state to show if no proxy responds."""
    now_ms = _now_ms()
    return {
        "time_ms": now_ms,
        "since_ms": now_ms,
        "version": VERSION,
        "proxies": 0,
        "name": "",
        "cluster_id": None,
        "state": "not serving",
        "conditions": [],
        "totals": Flow()._asdict(),
        "history": {"begin": 0} | {name: [] for name in Flow._fields},  # type: ignore[typeddict-item]
        "violation_groups": [],
        "other_violations": 0,
        "violations": [],
        "topics": [],
        "clients": [],
        "traffic": None,
        "distances": {"behind": {}, "ahead": {}, "rejected_behind": {}, "rejected_ahead": {}},
        "bounds": [],
        "connections": {"count": 0, "by_state": {}, "listed": []},
        "brokers": [],
        "broker_errors": [],
        "fleet": [],
    }
