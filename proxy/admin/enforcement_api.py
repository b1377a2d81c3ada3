"""`POST /api/suspend` and `POST /api/resume`, which suspend and resume enforcement.

Runs in the admin endpoint's threads. `topic` is a name, or a pattern as in a policy's `match`. A pattern stands for the
known topics that it matches at the time of the request. With `preview=true` the response lists these topics, and
nothing changes. With `state.topic` a change applies to all proxies of the cluster, unless `scope=proxy` limits it to
this proxy.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl
from uuid import uuid4

from sluicegate.config.values.kinds import topic_pattern
from sluicegate.config.values.topic_pattern import exact_name_of
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.reload.enforcement import MAX_SECONDS, MAX_SUSPENSIONS, Enforcement, TooManySuspensions
from sluicegate.proxy.reload.known_topics import KnownTopics, NoSuchTopic
from sluicegate.proxy.state.change import Actor, Operation, ResumeEnforcement, StateChange, SuspendEnforcement
from sluicegate.proxy.state.state_topic import StateUnwritable
from sluicegate.proxy.state.suspension import SuspensionScope
from sluicegate.proxy.webui.responses import HttpResponse, json_response, text_response

_MOST_REASON_CHARACTERS = 200
_LOOP_SECONDS = 3.0
_COMMIT_SECONDS = 5.0
_USAGE = (
    "expected /api/suspend?topic=NAME&reason=TEXT&seconds=NUMBER or /api/resume?topic=NAME, with all=true instead of "
    "topic for all topics; NAME may be a pattern, and preview=true changes nothing and returns the topics; scope=proxy "
    "changes only this proxy, scope=cluster (the default with state.topic) all proxies; seconds is at most "
    f"{MAX_SECONDS}, the reason has at most {_MOST_REASON_CHARACTERS} characters"
)
_ADMIN = "an administrator"
"""The author of a change: any client that uses the admin token."""

Commit = Callable[[Sequence[StateChange], float], None]
"""Writes changes for all proxies and waits for at most the given number of seconds. Raises StateUnwritable."""


@dataclass(frozen=True, slots=True)
class _Suspension:
    """The parameters of a suspension."""

    reason: str
    seconds: int


class EnforcementApi:
    """Suspends and resumes enforcement. Thread-safe.

    `enforcement` belongs to the event loop `loop`. `topics` are the topics whose enforcement can be suspended. `commit`
    is None without `state.topic`. `proxy` is this proxy's name in changes for all proxies.
    """

    def __init__(
        self,
        enforcement: Enforcement,
        topics: KnownTopics,
        loop: asyncio.AbstractEventLoop,
        commit: Commit | None = None,
        proxy: str = "",
    ) -> None:
        self._enforcement = enforcement
        self._topics = topics
        self._loop = loop
        self._commit = commit
        self._proxy = proxy

    def lines_about(self, topic: str) -> list[str]:
        """Return a line for each suspension that applies to `topic`."""
        return self._enforcement.lines_about(topic)

    def change(self, path: str, query: str, address: str) -> HttpResponse:
        """Make a change for an administrator at `address`, and return all suspensions after the change.

        Blocks, for a few seconds at most, until the change is in force in all workers of this proxy.
        """
        try:
            pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
            given = dict(pairs)
            if len(given) < len(pairs):
                raise ValueError(query)
            preview = given.pop("preview", "false")
            if preview not in ("true", "false"):
                raise ValueError(preview)
            default = SuspensionScope.PROXY if self._commit is None else SuspensionScope.CLUSTER
            scope = SuspensionScope(given.pop("scope", default.value))
            pattern = _pattern(given)
            suspension = _suspension(given) if path == "/api/suspend" else None
            if given:
                raise ValueError(query)
        except (ValueError, KeyError):
            return text_response(400, _USAGE)
        try:
            topics = [None] if pattern is None else self._matching(pattern)
        except NoSuchTopic as error:
            return text_response(404, str(error))
        if preview == "true":
            return json_response({"topics": topics})
        return self._changed(scope, topics, suspension, address)

    def _changed(
        self, scope: SuspensionScope, topics: Sequence[str | None], suspension: _Suspension | None, address: str
    ) -> HttpResponse:
        if scope is SuspensionScope.CLUSTER and self._commit is None:
            return text_response(409, "scope=cluster requires state.topic in the configuration")
        try:
            if suspension is not None:
                self._enforcement.check_room([topic for topic in topics if topic is not None])
            if scope is SuspensionScope.CLUSTER and self._commit is not None:
                changes = self._changes(topics, suspension, Actor(_ADMIN, address))
                self._commit(changes, _COMMIT_SECONDS)
                topics = ()  # the change from the state topic already covers these topics
            done = asyncio.run_coroutine_threadsafe(self._made(topics, suspension), self._loop)
            return done.result(_LOOP_SECONDS)
        except TooManySuspensions:
            return text_response(
                409, f"at most {MAX_SUSPENSIONS} topics can be suspended: resume some, or suspend all topics"
            )
        except StateUnwritable as error:
            return text_response(503, f"{error}; try again, or change only this proxy (scope=proxy)")
        except TimeoutError:
            return text_response(503, f"not all workers have applied this within {_LOOP_SECONDS:.0f} s; see /livez")

    def _changes(self, topics: Sequence[str | None], suspension: _Suspension | None, actor: Actor) -> list[StateChange]:
        def operation(topic: str | None) -> Operation:
            if suspension is None:
                return ResumeEnforcement(topic)
            return SuspendEnforcement(topic, suspension.reason, self._enforcement.end_after(suspension.seconds))

        now = self._enforcement.end_after(0)
        return [StateChange(uuid4().hex, now, actor, self._proxy, operation(topic)) for topic in topics]

    def _matching(self, pattern: str) -> list[str | None]:
        """Return the known topics that match a pattern. Raises NoSuchTopic."""
        suspended = [each.topic for each in self._enforcement.suspensions if each.topic is not None]
        return list(self._topics.matching(pattern, suspended))

    async def _made(self, topics: Sequence[str | None], suspension: _Suspension | None) -> HttpResponse:
        """Change these topics in this proxy only, and return all suspensions once they are in force.

        Raises TooManySuspensions and TimeoutError.
        """
        for topic in topics:
            if suspension is None:
                self._enforcement.resume(topic)
            else:
                self._enforcement.suspend(topic, suspension.reason, suspension.seconds)
        await self._enforcement.all_in_force()
        active = [
            {
                "topic": each.topic,
                "reason": each.reason,
                "until_ms": each.until_ms,
                "scope": each.scope.value,
                "text": str(each),
            }
            for each in self._enforcement.suspensions
        ]
        return json_response({"suspended": active})


def _suspension(given: dict[str, str]) -> _Suspension:
    """Return the reason and the duration in seconds from the parameters. Raises ValueError and KeyError."""
    reason, seconds = given.pop("reason").strip(), int(given.pop("seconds"))
    if not 0 < len(reason) <= _MOST_REASON_CHARACTERS or not 0 < seconds <= MAX_SECONDS:
        raise ValueError(reason)
    return _Suspension(reason, seconds)


def _pattern(given: dict[str, str]) -> str | None:
    """Return the topic or the pattern from the parameters, or None for `all=true`, which means all topics.

    Raises ValueError unless exactly one of them is given: an empty or forgotten name must never mean all topics.
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
