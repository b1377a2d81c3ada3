"""Handles the admin endpoint's requests that change a running proxy: suspensions of enforcement, and reloads.

`POST /api/reload` reloads the configuration immediately. With `accept_removed=true`, policies whose files have
disappeared are removed. The response contains the result, or reports that the reload is still running.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from sluicegate.config.model import Config
from sluicegate.proxy.admin.enforcement_api import EnforcementApi
from sluicegate.proxy.admin.letters_api import LettersApi
from sluicegate.proxy.admin.violations_api import ViolationsApi, violations_api
from sluicegate.proxy.cluster.topics import list_names_now
from sluicegate.proxy.live.live_snapshot import EVERYTHING
from sluicegate.proxy.reload.enforcement import Enforcement
from sluicegate.proxy.reload.known_topics import KnownTopics
from sluicegate.proxy.reload.reload_request import ReloadResult
from sluicegate.proxy.reload.topic_explanation import PolicyQuery
from sluicegate.proxy.reporting.proxy_name import proxy_name
from sluicegate.proxy.state.presence_metrics import presence_metrics
from sluicegate.proxy.state.shared_state import SharedState
from sluicegate.proxy.state.topic_description import TopicUnavailable
from sluicegate.proxy.webui.responses import HttpResponse, json_response, text_response
from sluicegate.proxy.webui.site import NoStateAvailable, ReadState

# The admin endpoint ends each request within 10 s, and `sluicegate reload` waits 5 s for the response.
_RELOAD_SECONDS = 4.0
_MOST_DAYS = 365
_DAY_MS = 86_400_000
_LOOK_AT_THE_TOPIC = (
    "run sluicegate doctor: it examines the brokers, the topic and the permissions of the proxy's login"
)
_USAGE = "expected /api/reload or /api/reload?accept_removed=true"

Reload = Callable[[bool], Coroutine[Any, Any, ReloadResult]]
"""Reloads the configuration. If the argument is true, policies whose files are missing are removed."""


class ProxyChanges:
    """Makes changes to the proxy. Thread-safe.

    `reload` runs in `loop`; it is None without a configuration file. `shared` is None without `state.topic`.
    """

    def __init__(
        self,
        enforcement: EnforcementApi,
        reload: Reload | None,
        loop: asyncio.AbstractEventLoop,
        shared: SharedState | None = None,
        violations: ViolationsApi | None = None,
        letters: LettersApi | None = None,
    ) -> None:
        self._enforcement = enforcement
        self._reload = reload
        self._loop = loop
        self._shared = shared
        self.violations = (violations or ViolationsApi(None)).find
        self._letters = letters
        self.fleet_metrics = None if shared is None else partial(presence_metrics, shared.presence.view)

    def lines_about(self, topic: str) -> list[str]:
        """Return a line for each suspension that applies to `topic`."""
        return self._enforcement.lines_about(topic)

    def change(self, path: str, query: str, address: str) -> HttpResponse:
        """Make a change for a client at this address, and return its result. Blocks for up to a few seconds."""
        return self._reloaded(query) if path == "/api/reload" else self._enforcement.change(path, query, address)

    def history(self, query: str) -> HttpResponse:
        """Return recent changes and their authors, from all proxies with the same state topic.

        Blocks for up to a few seconds. The list is null without `state.topic`. If the topic cannot be read, the list is
        null and `problem` gives the reason.
        """
        try:
            given = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=True)) if query else {}
            days = float(given.pop("days", "7"))
            if given or not 0 < days <= _MOST_DAYS:
                raise ValueError(query)
        except ValueError:
            return text_response(400, f"expected /api/changes?days=NUMBER, at most {_MOST_DAYS}")
        if self._shared is None:
            return json_response({"changes": None})
        try:
            found = self._shared.history.read(time.time_ns() // 10**6 - round(days * _DAY_MS))
        except TopicUnavailable as error:
            return json_response({"changes": None, "problem": str(error), "advice": _LOOK_AT_THE_TOPIC})
        changes = [entry.as_json() for entry in found.entries]
        return json_response({"since_ms": found.since_ms, "is_complete": found.is_complete, "changes": changes})

    def fleet(self) -> HttpResponse:
        """Return all proxies with the same presence topic.

        Blocks for up to a few seconds. The list is null without `state.topic`. If the topic cannot be read, the list is
        null and `problem` gives the reason.
        """
        if self._shared is None:
            return json_response({"proxies": None})
        try:
            return json_response(self._shared.presence.view().as_json())
        except TopicUnavailable as error:
            advice = self._shared.presence.remedy if error.is_missing else _LOOK_AT_THE_TOPIC
            return json_response({"proxies": None, "problem": str(error), "advice": advice})

    def dead_letters(self, query: str) -> HttpResponse:
        """Return the dead letters of `admin.dead_letters`. Blocks for up to a few seconds."""
        return text_response(404, "no configuration") if self._letters is None else self._letters.find(query)

    def _reloaded(self, query: str) -> HttpResponse:
        if query not in ("", "accept_removed=true"):
            return text_response(400, _USAGE)
        if self._reload is None:
            return text_response(409, "there is no configuration file to reload: start sluicegate with --config")
        reloading = asyncio.run_coroutine_threadsafe(self._reload(bool(query)), self._loop)
        try:
            result = reloading.result(_RELOAD_SECONDS)
        except TimeoutError:
            return json_response({"outcome": "under way", "problems": [], "missing": []})
        outcome = "rejected" if result.problems else "reloaded"
        missing = [{"file": str(each.file), "topics": list(each.topics)} for each in result.missing]
        return json_response({"outcome": outcome, "problems": list(result.problems), "missing": missing})


def changes_of(
    config: Config,
    query: PolicyQuery,
    enforcement: Enforcement,
    shared: SharedState | None,
    read_state: ReadState,
    reload: Reload | None,
) -> ProxyChanges:
    """Create the ProxyChanges of a proxy that runs in the current event loop. `query` contains the
    policies in force.
    """

    def with_traffic() -> list[str]:
        try:
            topics = read_state(EVERYTHING)["topics"]
        except (NoStateAvailable, TimeoutError):
            return []
        return [each["name"] for each in topics if each["name"] is not None]

    loop = asyncio.get_running_loop()
    topics = KnownTopics(lambda: query.loaded, with_traffic, partial(list_names_now, config.upstream))
    commit = None if shared is None else shared.commit
    api = EnforcementApi(enforcement, topics, loop, commit, proxy_name(config))
    return ProxyChanges(api, reload, loop, shared, violations_api(config), LettersApi(lambda: query.loaded))
