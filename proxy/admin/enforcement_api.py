"""`POST /api/suspend` and `POST /api/resume`: suspend and resume enforcement, from the admin endpoint's threads."""

import asyncio
import json
from collections.abc import Callable
from urllib.parse import parse_qsl

from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.reload.enforcement import MAX_SECONDS, MAX_SUSPENSIONS, Enforcement, TooManySuspensions
from sluicegate.proxy.webui.responses import SAFE, Response, text_response

_MOST_REASON_CHARACTERS = 200
_LOOP_SECONDS = 5.0
_USAGE = (
    "expected /api/suspend?topic=NAME&reason=TEXT&seconds=NUMBER or /api/resume?topic=NAME, with all=true instead of "
    f"topic for all topics; seconds is at most {MAX_SECONDS}, the reason has at most {_MOST_REASON_CHARACTERS} "
    "characters"
)


class EnforcementApi:
    """Thread-safe. `loop`: the event loop that `enforcement` belongs to."""

    def __init__(self, enforcement: Enforcement, loop: asyncio.AbstractEventLoop) -> None:
        self._enforcement = enforcement
        self._loop = loop

    def lines_about(self, topic: str) -> list[str]:
        """Return a line for each suspension that applies to `topic`."""
        return self._enforcement.lines_about(topic)

    def change(self, path: str, query: str) -> Response:
        """Make a change, and return all suspensions then. Blocks until it is in force, 5 s at most."""
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
            given = dict(pairs)
            if len(given) < len(pairs):
                raise ValueError(query)
            topic = _topic(given)
            change = self._suspension(topic, given) if path == "/api/suspend" else self._end(topic, given)
        except (ValueError, KeyError):
            return text_response(400, _USAGE)
        try:
            return asyncio.run_coroutine_threadsafe(self._made(change), self._loop).result(_LOOP_SECONDS)
        except TooManySuspensions:
            return text_response(
                409, f"{MAX_SUSPENSIONS} topics are suspended already: resume some, or suspend all topics"
            )
        except TimeoutError:
            return text_response(503, f"the proxy has not applied this within {_LOOP_SECONDS:.0f} s; see /livez")

    def _suspension(self, topic: str | None, given: dict[str, str]) -> Callable[[], object]:
        """Raises ValueError and KeyError for other parameters than the documented ones."""
        reason, seconds = given.pop("reason").strip(), int(given.pop("seconds"))
        if given or not 0 < len(reason) <= _MOST_REASON_CHARACTERS or not 0 < seconds <= MAX_SECONDS:
            raise ValueError
        return lambda: self._enforcement.suspend(topic, reason, seconds)

    def _end(self, topic: str | None, given: dict[str, str]) -> Callable[[], object]:
        if given:
            raise ValueError
        return lambda: self._enforcement.resume(topic)

    async def _made(self, change: Callable[[], object]) -> Response:
        change()
        active = [
            {"topic": each.topic, "reason": each.reason, "until_ms": each.until_ms, "text": str(each)}
            for each in self._enforcement.suspensions
        ]
        body = json.dumps({"suspended": active}).encode()
        return Response(200, body, (("Content-Type", "application/json"), *SAFE))


def _topic(given: dict[str, str]) -> str | None:
    """Take the topic out of the parameters; None for `all=true`, all topics.

    Raises ValueError unless exactly one of them is given: an empty or a forgotten name never means all topics.
    """
    topic, everything = given.pop("topic", None), given.pop("all", None)
    if everything == "true" and topic is None:
        return None
    if everything is not None or topic is None or not is_legal_topic_name(topic):
        raise ValueError(topic)
    return topic
