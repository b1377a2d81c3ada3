"""Routes the web UI's requests.

Files are at / and /ui/, and data at /api/. /api/live returns all data once, and /api/stream every second. /api/history
returns a topic's or a client's traffic, /api/policy a topic's policy, and /api/policy-changes the latest policy
changes. /api/changes and /api/fleet cover all proxies with the same state topic, and /api/violations all proxies with
the same `violations.topic`. /api/dead-letters returns the topics of `admin.dead_letters`. POST requests to
/api/suspend, /api/resume and /api/reload change what is enforced.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import unquote_plus

from prometheus_client.exposition import gzip_accepted

from sluicegate.proxy.live.live_snapshot import CLIENT, EVERYTHING, TOPIC, LiveQuery, history_of
from sluicegate.proxy.live.live_state import LiveState
from sluicegate.proxy.webui.access import Access
from sluicegate.proxy.webui.responses import SAFE, HttpResponse, Slow, asset, text_response

ReadState = Callable[[LiveQuery], LiveState]
"""Returns the state. Raises NoStateAvailable."""
Explain = Callable[[str], dict[str, Any]]
"""Returns a topic's policy in the API's form, with `lines` for people, `effective` and `source`."""
ReadReloads = Callable[[], list[dict[str, Any]]]
"""Returns the latest policy changes in the API's form, newest first."""
_JSON = "application/json"
_OF_ALL_PROXIES = frozenset({"/api/changes", "/api/dead-letters", "/api/fleet", "/api/violations"})
_ELSEWHERE: dict[str, dict[str, Any]] = {
    "/api/dead-letters": {
        "topics": None,
        "groups": None,
        "problem": "the web UI of the fleet reads no topic",
        "advice": "open the web UI of a proxy with admin.dead_letters",
    },
    "/api/fleet": {"proxies": None},
    "/api/violations": {
        "groups": None,
        "problem": "the fleet's web UI does not read topics",
        "advice": "open the web UI of a proxy with violations.topic",
    },
}
"""The responses of a site that has no cluster of its own."""
_DATA = _OF_ALL_PROXIES | {"/api/live", "/api/stream", "/api/history", "/api/policy", "/api/policy-changes"}
_CHANGES = ("/api/suspend", "/api/resume", "/api/reload")
_MOST_TOPIC_CHARACTERS = 300
_MOST_CLIENT_CHARACTERS = 1000


class Changes(Protocol):
    """Suspends and resumes enforcement, and reloads the configuration."""

    def lines_about(self, topic: str, /) -> list[str]:
        """Return a line for each suspension that applies to `topic`."""
        ...

    def change(self, path: str, query: str, address: str, /) -> HttpResponse:
        """Make a change for a client at this address. Blocks."""
        ...

    def history(self, query: str, /) -> HttpResponse:
        """Return the changes with their authors. Blocks."""
        ...

    def fleet(self) -> HttpResponse:
        """Return all proxies of the cluster. Blocks."""
        ...

    def violations(self, query: str, /) -> HttpResponse:
        """Return recent violations. Blocks."""
        ...

    def dead_letters(self, query: str, /) -> HttpResponse:
        """Return the topics with dead letters, or one topic's groups. Blocks."""
        ...


class NoStateAvailable(Exception):
    """No process has responded. The message is for people."""


@dataclass(frozen=True, slots=True)
class StreamRequested:
    """The response is a stream of live data, sent every second."""


class Site:
    """Finds the response to a request. Thread-safe."""

    def __init__(
        self,
        access: Access,
        read_state: ReadState,
        explain: Explain,
        changes: Changes | None = None,
        read_reloads: ReadReloads = list,
    ) -> None:
        """`changes` is None if nothing can be changed at this site."""
        self._access = access
        self._changes = changes
        self.read_state = read_state
        self._explain = explain
        self._read_reloads = read_reloads

    def find(self, target: str, headers: Mapping[str, str]) -> HttpResponse | Slow | StreamRequested | None:
        """Return the response to a GET request, or a function that returns it.

        Return None if the path does not belong to the web UI.
        """
        path, _, query = target.partition("?")
        if path == "/" or path.startswith("/ui/"):
            return self._access.rejection_of_files(headers) or asset(
                path, gzip_accepted(headers.get("accept-encoding", ""))
            )
        if path not in _DATA:
            return None
        rejection = self._access.rejection_of_data(headers)
        if rejection is not None:
            return rejection
        if path == "/api/stream":
            return StreamRequested()
        if path == "/api/policy-changes":
            return lambda: _json({"changes": self._read_reloads()})
        if path in _OF_ALL_PROXIES:
            return lambda: self._of_all_proxies(path, query)
        if path == "/api/history":
            return lambda: self._history(query)
        return self._live if path == "/api/live" else lambda: self._policy(query)

    def change(self, target: str, headers: Mapping[str, str], address: str) -> HttpResponse:
        """Return the response to a POST request from a client at this address. Blocks."""
        path, _, query = target.partition("?")
        if self._changes is None or path not in _CHANGES:
            return text_response(404, f"POST is only allowed for {', '.join(_CHANGES)}")
        return self._access.rejection_of_change(headers) or self._changes.change(path, query, address)

    def _of_all_proxies(self, path: str, query: str) -> HttpResponse:
        if self._changes is None:
            return (
                _json(_ELSEWHERE[path])
                if path in _ELSEWHERE
                else text_response(404, "this server does not allow changes")
            )
        if path == "/api/fleet":
            return self._changes.fleet()
        if path == "/api/dead-letters":
            return self._changes.dead_letters(query)
        return self._changes.violations(query) if path == "/api/violations" else self._changes.history(query)

    def _live(self) -> HttpResponse:
        try:
            return _json(self.read_state(EVERYTHING))
        except NoStateAvailable as error:
            return text_response(503, str(error))

    def _history(self, query: str) -> HttpResponse:
        kind, equals, value = query.partition("=")
        name = unquote_plus(value)
        if kind not in (TOPIC, CLIENT) or len(name) > _MOST_CLIENT_CHARACTERS or (kind == TOPIC and not name):
            return text_response(400, "name a topic or a client: /api/history?topic=NAME or /api/history?client=ID")
        try:
            return _json({"traffic": self.read_state(history_of(kind, name if equals else None))["traffic"]})
        except NoStateAvailable as error:
            return text_response(503, str(error))

    def _policy(self, query: str) -> HttpResponse:
        name, _, value = query.partition("=")
        topic = unquote_plus(value)
        if name != "topic" or not topic or len(topic) > _MOST_TOPIC_CHARACTERS:
            return text_response(400, "name a topic: /api/policy?topic=NAME")
        suspended = self._changes.lines_about(topic) if self._changes is not None else []
        explained = self._explain(topic)
        return _json({**explained, "lines": explained["lines"] + suspended})


def _json(value: object) -> HttpResponse:
    return HttpResponse(200, json.dumps(value).encode(), (("Content-Type", _JSON), *SAFE))
