"""`POST /api/suspend` and `POST /api/resume`: suspend and resume enforcement, from the admin endpoint's threads."""

import asyncio
import json
from collections.abc import Callable
from urllib.parse import parse_qs

from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.reload.enforcement import MAX_SECONDS, MAX_SUSPENSIONS, Enforcement, TooManySuspensions
from sluicegate.proxy.webui.responses import SAFE, Response, text_response

_MOST_REASON_CHARACTERS = 200
_LOOP_SECONDS = 5.0
_USAGE = (
    "expected /api/suspend?reason=TEXT&seconds=NUMBER[&topic=NAME] or /api/resume[?topic=NAME]; seconds is at most "
    f"{MAX_SECONDS}, the reason has at most {_MOST_REASON_CHARACTERS} characters"
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
            given = {name: values[0] for name, values in parse_qs(query, strict_parsing=bool(query)).items()}
            topic = given.pop("topic", None)
            if topic is not None and not is_legal_topic_name(topic):
                raise ValueError(topic)
            change = self._suspension(topic, given) if path == "/api/suspend" else self._end(topic, given)
        except (ValueError, KeyError):
            return text_response(400, _USAGE)
        try:
            return asyncio.run_coroutine_threadsafe(self._made(change), self._loop).result(_LOOP_SECONDS)
        except TooManySuspensions:
            return text_response(409, f"{MAX_SUSPENSIONS} topics are suspended already: suspend all topics instead")
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
