"""`POST /api/suspend` and `POST /api/resume`: suspend and resume enforcement, from the admin endpoint's threads.

`topic` is a name or a pattern, as `match` of a policy; it stands for the known topics that it matches now. With
`preview=true` these are returned, and nothing changes.
"""

import asyncio
from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl

from sluicegate.config.values.kinds import topic_pattern
from sluicegate.config.values.topic_pattern import exact_name_of
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.reload.enforcement import MAX_SECONDS, MAX_SUSPENSIONS, Enforcement, TooManySuspensions
from sluicegate.proxy.reload.known_topics import KnownTopics, NoSuchTopic
from sluicegate.proxy.webui.responses import HttpResponse, json_response, text_response

_MOST_REASON_CHARACTERS = 200
_LOOP_SECONDS = 5.0
_USAGE = (
    "expected /api/suspend?topic=NAME&reason=TEXT&seconds=NUMBER or /api/resume?topic=NAME, with all=true instead of "
    "topic for all topics; NAME may be a pattern, and preview=true changes nothing and returns the topics; seconds is "
    f"at most {MAX_SECONDS}, the reason has at most {_MOST_REASON_CHARACTERS} characters"
)

_Change = Callable[[Sequence[str | None]], None]


class EnforcementApi:
    """Thread-safe. `loop`: the event loop that `enforcement` belongs to. `topics`: those that can be suspended."""

    def __init__(self, enforcement: Enforcement, topics: KnownTopics, loop: asyncio.AbstractEventLoop) -> None:
        self._enforcement = enforcement
        self._topics = topics
        self._loop = loop

    def lines_about(self, topic: str) -> list[str]:
        """Return a line for each suspension that applies to `topic`."""
        return self._enforcement.lines_about(topic)

    def change(self, path: str, query: str) -> HttpResponse:
        """Make a change, and return all suspensions then. Blocks until it is in force, for seconds at most."""
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
            given = dict(pairs)
            if len(given) < len(pairs):
                raise ValueError(query)
            preview = given.pop("preview", "false")
            if preview not in ("true", "false"):
                raise ValueError(preview)
            pattern = _pattern(given)
            change = self._suspension(given) if path == "/api/suspend" else self._end(given)
        except (ValueError, KeyError):
            return text_response(400, _USAGE)
        try:
            topics = [None] if pattern is None else self._matching(pattern)
        except NoSuchTopic as error:
            return text_response(404, str(error))
        if preview == "true":
            return json_response({"topics": topics})
        try:
            return asyncio.run_coroutine_threadsafe(self._made(change, topics), self._loop).result(_LOOP_SECONDS)
        except TooManySuspensions:
            return text_response(
                409, f"at most {MAX_SUSPENSIONS} topics can be suspended: resume some, or suspend all topics"
            )
        except TimeoutError:
            return text_response(503, f"the proxy has not applied this within {_LOOP_SECONDS:.0f} s; see /livez")

    def _matching(self, pattern: str) -> list[str | None]:
        """Raises NoSuchTopic."""
        suspended = [each.topic for each in self._enforcement.suspensions if each.topic is not None]
        return list(self._topics.matching(pattern, suspended))

    def _suspension(self, given: dict[str, str]) -> _Change:
        """Raises ValueError and KeyError for other parameters than the documented ones."""
        reason, seconds = given.pop("reason").strip(), int(given.pop("seconds"))
        if given or not 0 < len(reason) <= _MOST_REASON_CHARACTERS or not 0 < seconds <= MAX_SECONDS:
            raise ValueError

        def suspend(topics: Sequence[str | None]) -> None:
            self._enforcement.check_room([topic for topic in topics if topic is not None])
            for topic in topics:
                self._enforcement.suspend(topic, reason, seconds)

        return suspend

    def _end(self, given: dict[str, str]) -> _Change:
        if given:
            raise ValueError

        def resume(topics: Sequence[str | None]) -> None:
            for topic in topics:
                self._enforcement.resume(topic)

        return resume

    async def _made(self, change: _Change, topics: Sequence[str | None]) -> HttpResponse:
        change(topics)
        active = [
            {"topic": each.topic, "reason": each.reason, "until_ms": each.until_ms, "text": str(each)}
            for each in self._enforcement.suspensions
        ]
        return json_response({"suspended": active})


def _pattern(given: dict[str, str]) -> str | None:
    """Take the topic, or the pattern of topics, out of the parameters; None for `all=true`, all topics.

    Raises ValueError unless exactly one of them is given: an empty or a forgotten name never means all topics.
    """
    topic, everything = given.pop("topic", None), given.pop("all", None)
    if everything == "true" and topic is None:
        return None
    if everything is not None or topic is None:
        raise ValueError(topic)
    exact = exact_name_of(topic_pattern(topic))
    if exact is not None and not is_legal_topic_name(exact):
        raise ValueError(topic)
    return topic
