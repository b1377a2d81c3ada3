"""`GET /api/violations`, which returns recent violations from `violations.topic`, by client, topic, owner and rule."""

import math
import time
from collections.abc import Callable
from urllib.parse import parse_qsl

from sluicegate.config.model import Config
from sluicegate.proxy.state.topic_description import TopicUnavailable
from sluicegate.proxy.watching.violation_counts import EventSelection
from sluicegate.proxy.watching.violation_history import ViolationHistory
from sluicegate.proxy.webui.responses import HttpResponse, json_response, text_response

_MOST_DAYS = 365
_DAY_MS = 86_400_000
_USAGE = (
    "expected /api/violations with days=NUMBER (at most 365), until_ms=TIME, topic=NAME, client=ID, owner=TEAM or "
    "rule=NAME"
)


class ViolationsApi:
    """Returns violations. Thread-safe. `history` is None without `violations.topic`."""

    def __init__(
        self, history: ViolationHistory | None, now_ms: Callable[[], int] = lambda: time.time_ns() // 10**6
    ) -> None:
        self._history = history
        self._now_ms = now_ms

    def find(self, query: str) -> HttpResponse:
        """Return the violations.

        Blocks for up to a few seconds. If they cannot be read, they are null and `problem` gives the reason.
        """
        try:
            given = dict(parse_qsl(query, keep_blank_values=True, strict_parsing=True)) if query else {}
            days = float(given.pop("days", "7"))
            until_ms = int(given.pop("until_ms", self._now_ms()))
            wanted = EventSelection(**given)
            if not 0 < days <= _MOST_DAYS or not 0 <= until_ms < 1 << 60 or math.isnan(days):
                raise ValueError(query)
        except (ValueError, TypeError):
            return text_response(400, _USAGE)
        if self._history is None:
            advice = "set violations.topic; without a topic the proxy has only the violations since its start"
            return _unknown("violations.topic is not configured", advice)
        try:
            found = self._history.read(max(0, until_ms - round(days * _DAY_MS)), until_ms, wanted)
        except TopicUnavailable as error:
            advice = "allow the proxy's login READ and DESCRIBE on the topic; sluicegate doctor examines the brokers"
            return _unknown(str(error), advice)
        return json_response(found.as_json())


def _unknown(problem: str, advice: str) -> HttpResponse:
    return json_response({"groups": None, "problem": problem, "advice": advice})


def violations_api(config: Config) -> ViolationsApi:
    """Create the API for a proxy with this configuration."""
    topic = config.violations.topic
    return ViolationsApi(None if topic is None else ViolationHistory(topic, config.upstream))
