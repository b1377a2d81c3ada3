"""Asks proxies what they see, at their admin addresses."""

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
_WORDS_BYTES = 2000
_AT_ONCE = 16
_NEEDED = frozenset({"time_ms", "history", "violation_groups", "violations", "connections", "brokers", "totals"})


class StateUnavailable(Exception):
    """A proxy does not show what it sees; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one address has said: what it sees, or why it does not show it."""

    address: HostPort
    state: LiveState | None
    reason: str | None = None


def ask(address: HostPort, token: str | None) -> LiveState:
    """What the proxy at this admin address sees now. Raises StateUnavailable."""
    connection = http.client.HTTPConnection(address.host, address.port, timeout=_SECONDS)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        connection.request("GET", "/api/live", headers=headers)
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            words = answer.read(_WORDS_BYTES).decode(errors="replace").strip()
            raise StateUnavailable(f"{answer.status} {printable(cut(words, 500))}")
        content = answer.read(_MAX_BYTES + 1)
    except (OSError, http.client.HTTPException) as error:
        raise StateUnavailable(getattr(error, "strerror", None) or str(error) or type(error).__name__) from error
    finally:
        connection.close()
    try:
        state = json.loads(content) if len(content) <= _MAX_BYTES else None
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict) or not state.keys() >= _NEEDED:
        raise StateUnavailable("what answers there is no sluicegate with a page, or another version")
    return cast(LiveState, state)


def ask_all(
    addresses: Sequence[HostPort], token: str | None, ask: Callable[[HostPort, str | None], LiveState] = ask
) -> list[Answer]:
    """What each says, asked at the same time, in their order."""

    def one(address: HostPort) -> Answer:
        try:
            return Answer(address, ask(address, token))
        except StateUnavailable as error:
            return Answer(address, None, str(error))

    with ThreadPoolExecutor(min(_AT_ONCE, len(addresses))) as threads:
        return list(threads.map(one, addresses))
