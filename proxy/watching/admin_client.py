"""Reads the live state of proxies at their admin addresses."""

import http.client
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.reporting.bounded_text import cut, printable

_SECONDS = 5.0
_MAX_BYTES = 32 << 20
_REASON_BYTES = 2000
_AT_ONCE = 16
_REQUIRED = frozenset({"time_ms", "history", "violation_groups", "violations", "connections", "brokers", "totals"})


class StateUnavailable(Exception):
    """The state of a proxy is unavailable; the text has the reason."""


@dataclass(frozen=True, slots=True)
class ProxyState:
    """The state of the proxy at one address, or why it is unavailable."""

    address: HostPort
    state: LiveState | None
    reason: str | None = None


def read_state(address: HostPort, token: str | None) -> LiveState:
    """Return the live state of the proxy at this admin address. Raises StateUnavailable."""
    connection = http.client.HTTPConnection(address.host, address.port, timeout=_SECONDS)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        connection.request("GET", "/api/live", headers=headers)
        response = connection.getresponse()
        if response.status != http.client.OK:
            reason = response.read(_REASON_BYTES).decode(errors="replace").strip()
            raise StateUnavailable(f"{response.status} {printable(cut(reason, 500))}")
        content = response.read(_MAX_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        raise StateUnavailable(getattr(error, "strerror", None) or str(error) or type(error).__name__) from error
    finally:
        connection.close()
    try:
        state = json.loads(content) if len(content) <= _MAX_BYTES else None
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict) or not state.keys() >= _REQUIRED:
        raise StateUnavailable("not a sluicegate with the web UI, or another version")
    return cast(LiveState, state)


def read_states(
    addresses: Sequence[HostPort], token: str | None, read: Callable[[HostPort, str | None], LiveState] = read_state
) -> list[ProxyState]:
    """Return the state of each proxy, in this order; they are read in parallel."""

    def one(address: HostPort) -> ProxyState:
        try:
            return ProxyState(address, read(address, token))
        except StateUnavailable as error:
            return ProxyState(address, None, str(error))

    with ThreadPoolExecutor(min(_AT_ONCE, len(addresses))) as threads:
        return list(threads.map(one, addresses))
