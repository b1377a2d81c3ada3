"""Sends requests to proxies' admin addresses: to read the live state, suspend and resume enforcement, and reload."""

import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import OK, HTTPException
from typing import Any, cast
from urllib.parse import urlencode

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.live.live_state import LiveState, TrafficHistory
from sluicegate.proxy.live.traffic import sum_of_histories
from sluicegate.proxy.network.http_client import LookUpLimits, http_failure_message, response_to
from sluicegate.proxy.reporting.bounded_text import cut, printable

SECONDS = 5.0
SUSPEND, RESUME = "/api/suspend", "/api/resume"
_CHANGE_SECONDS = 10.0  # listing the cluster's topics takes at most 3 s
_MAX_BYTES = 32 << 20
_REASON_BYTES = 2000
_REASON_CHARACTERS = 1000
_AT_ONCE = 16
_MAX_POLICY_BYTES = 1 << 20
_REQUIRED = frozenset({"time_ms", "history", "violation_groups", "violations", "connections", "brokers", "totals"})


class StateUnavailable(Exception):
    """A proxy's state is unavailable. The message gives the reason."""


@dataclass(frozen=True, slots=True)
class ProxyState:
    """The state of the proxy at one address, or the reason why it is unavailable."""

    address: HostPort
    state: LiveState | None
    reason: str | None = None


def read_state(address: HostPort, token: str | None, most_bytes: int = _MAX_BYTES) -> LiveState:
    """Return the live state of the proxy at this admin address. Raises StateUnavailable."""
    state = _json_from(address, token, "GET", "/api/live", most_bytes)
    if not isinstance(state, dict) or not state.keys() >= _REQUIRED:
        raise StateUnavailable("the server is not a sluicegate web UI, or has another version")
    later: dict[str, Any] = {"name": str(address), "cluster_id": None, "topics": [], "broker_errors": [], "fleet": []}
    later |= {"clients": [], "traffic": None}
    return cast(LiveState, {**later, **state})


def read_policy(address: HostPort, token: str | None, topic: str) -> dict[str, Any]:
    """Return a topic's policy as the API returns it (docs/web-ui.md). Raises StateUnavailable."""
    found = _json_from(address, token, "GET", f"/api/policy?{urlencode({'topic': topic})}", _MAX_POLICY_BYTES)
    lines = found.get("lines") if isinstance(found, dict) else None
    if not isinstance(lines, list):
        raise StateUnavailable("the server is not a sluicegate web UI, or has another version")
    return {"topic": topic, "effective": [], "source": None, **found, "lines": [str(line) for line in lines]}


def read_history(address: HostPort, token: str | None, kind: str, name: str | None) -> TrafficHistory | None:
    """Return a topic's or a client's traffic, or None if the proxy does not know it. Raises StateUnavailable."""
    query = kind if name is None else urlencode({kind: name})
    found = _json_from(address, token, "GET", f"/api/history?{query}", _MAX_POLICY_BYTES)
    if not isinstance(found, dict) or "traffic" not in found:
        raise StateUnavailable("the server is not a sluicegate web UI, or has another version")
    history = cast(TrafficHistory | None, found["traffic"])
    try:
        return None if history is None else sum_of_histories([history])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StateUnavailable(f"the history has another format ({type(error).__name__})") from error


def read_policy_changes(address: HostPort, token: str | None) -> list[dict[str, Any]]:
    """Return the latest policy changes as the API returns them (docs/web-ui.md). Raises StateUnavailable."""
    found = _json_from(address, token, "GET", "/api/policy-changes", _MAX_POLICY_BYTES)
    changes = found.get("changes") if isinstance(found, dict) else None
    if not isinstance(changes, list) or not all(isinstance(each, dict) and "time_ms" in each for each in changes):
        raise StateUnavailable("the server is not a sluicegate web UI, or has another version")
    return changes


def read_changes(address: HostPort, token: str | None, days: float) -> dict[str, Any]:
    """Return the changes of the last `days` days and their authors, as the API returns them (docs/web-ui.md).

    Raises StateUnavailable.
    """
    found = _json_from(address, token, "GET", f"/api/changes?days={days:g}", seconds=_CHANGE_SECONDS)
    return _with_known(found, "changes", "the history")


def read_fleet(address: HostPort, token: str | None) -> dict[str, Any]:
    """Return all proxies of a cluster as the API returns them (docs/shared-state.md). Raises StateUnavailable."""
    found = _json_from(address, token, "GET", "/api/fleet", seconds=_CHANGE_SECONDS)
    return _with_known(found, "proxies", "the view of the fleet")


def read_violations(address: HostPort, token: str | None, query: dict[str, str]) -> dict[str, Any]:
    """Return recent violations as `GET /api/violations` returns them. Raises StateUnavailable."""
    found = _json_from(address, token, "GET", f"/api/violations?{urlencode(query)}", seconds=_CHANGE_SECONDS)
    return _with_known(found, "groups", "the range of violations")


def _with_known(found: Any, key: str, what: str) -> dict[str, Any]:
    """Return data that a proxy has read from a topic.

    `key` is the key of the list, which is null if the proxy could not read it. Raises StateUnavailable.
    """
    if not isinstance(found, dict) or not isinstance(found.get(key, ...), list | None):
        raise StateUnavailable("the server is not a sluicegate web UI, or has another version")
    if found[key] is not None:
        return found
    if (problem := found.get("problem")) is None:
        raise StateUnavailable(f"{what} needs state.topic in the configuration")
    text = f"{what} cannot be read: {problem}; {found.get('advice')}"
    raise StateUnavailable(printable(cut(text, _REASON_CHARACTERS)))


def read_states(
    addresses: Sequence[HostPort], token: str | None, read: Callable[[HostPort, str | None], LiveState] = read_state
) -> list[ProxyState]:
    """Return each proxy's state, in the order of `addresses`. The states are read in parallel."""

    def read_proxy(address: HostPort) -> ProxyState:
        try:
            return ProxyState(address, read(address, token))
        except StateUnavailable as error:
            return ProxyState(address, None, str(error))

    with ThreadPoolExecutor(min(_AT_ONCE, len(addresses))) as threads:
        return list(threads.map(read_proxy, addresses))


def suspend(
    address: HostPort, token: str | None, topic: str | None, reason: str, seconds: int, this_proxy: bool
) -> list[str]:
    """Suspend enforcement for a topic, or for all topics if `topic` is None.

    Return a line for each suspension. If `this_proxy` is true, other proxies with the same state topic are not changed.
    Raises StateUnavailable.
    """
    return _change(address, token, SUSPEND, {"reason": reason, "seconds": seconds, **_scope(this_proxy)}, topic)


def topics_to_change(address: HostPort, token: str | None, path: str, pattern: str) -> list[str]:
    """Return the topics that a change with this pattern would affect.

    `path` is the API path of `suspend` or `resume`. Raises StateUnavailable.
    """
    parameters = {"topic": pattern, "preview": "true"}
    if path == SUSPEND:
        parameters |= {"reason": "preview", "seconds": "1"}
    found = _json_from(address, token, "POST", f"{path}?{urlencode(parameters)}")
    topics = found.get("topics") if isinstance(found, dict) else None
    if not isinstance(topics, list):
        raise StateUnavailable("the server is not a sluicegate web UI, or has another version")
    return [str(topic) for topic in topics]


def resume(address: HostPort, token: str | None, topic: str | None, this_proxy: bool) -> list[str]:
    """Resume enforcement for a topic, or for all topics if `topic` is None.

    Return a line for each remaining suspension. If `this_proxy` is true, other proxies with the same state topic are
    not changed. Raises StateUnavailable.
    """
    return _change(address, token, RESUME, {**_scope(this_proxy)}, topic)


def reload(address: HostPort, token: str | None, accept_removed: bool) -> list[str]:
    """Reload the configuration.

    Return a line for the result and for each missing file. Raises StateUnavailable, also if the proxy rejects the
    configuration.
    """
    found = _json_from(address, token, "POST", f"/api/reload{'?accept_removed=true' if accept_removed else ''}")
    outcome = found.get("outcome") if isinstance(found, dict) else None
    if outcome == "under way":
        return ["the reload has started; /readyz and the log will show its result"]
    if outcome == "rejected":
        problems = "; ".join(str(problem) for problem in found["problems"])
        raise StateUnavailable(
            printable(cut(f"rejected, the previous policies stay in force: {problems}", _REASON_CHARACTERS))
        )
    if outcome != "reloaded":
        raise StateUnavailable("the server is not a sluicegate web UI, or has another version")
    texts = ["reloaded"]
    for each in found["missing"]:
        kept = ", ".join(map(str, each["topics"]))
        texts.append(
            f"{each['file']} is missing or unreadable; its last policies stay in force ({kept}); "
            "--accept-removed ends them"
        )
    return [printable(cut(text, _REASON_CHARACTERS)) for text in texts]


def _scope(this_proxy: bool) -> dict[str, str]:
    return {"scope": "proxy"} if this_proxy else {}


def _change(
    address: HostPort, token: str | None, path: str, parameters: dict[str, str | int], topic: str | None
) -> list[str]:
    scope = {"all": "true"} if topic is None else {"topic": topic}
    found = _json_from(address, token, "POST", f"{path}?{urlencode({**scope, **parameters})}", seconds=_CHANGE_SECONDS)
    suspended = found.get("suspended") if isinstance(found, dict) else None
    if not isinstance(suspended, list):
        raise StateUnavailable("the server is not a sluicegate web UI, or has another version")
    return [printable(cut(str(each.get("text")), 500)) for each in suspended if isinstance(each, dict)]


def _json_from(
    address: HostPort,
    token: str | None,
    method: str,
    target: str,
    most_bytes: int = _MAX_BYTES,
    seconds: float = SECONDS,
) -> Any:
    """Return the proxy's response as JSON, or None if it is not JSON.

    The response must arrive within `seconds`. Raises StateUnavailable.
    """
    bounds = LookUpLimits(time.monotonic() + seconds, most_bytes)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        with response_to(method, f"http://{address}{target}", bounds, headers) as response:
            if response.status != OK:
                reason = response.read(_REASON_BYTES).decode(errors="replace").strip()
                raise StateUnavailable(f"{response.status} {printable(cut(reason, _REASON_CHARACTERS))}")
            content = response.read()
    except (OSError, HTTPException) as error:
        raise StateUnavailable(printable(http_failure_message(error, seconds))) from error
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
