"""Reads topic settings from the cluster (`upstream.topic_settings`), so that the configuration need not repeat them.

A topic's settings are requested before its first batch is validated, and again every `upstream.refresh_seconds`. Only
one request is in flight at a time, for all waiting topics. A first batch waits at most FIRST_BATCH_SECONDS. After that
time, or if the settings cannot be read, the configuration applies. After a failed or late request, no batch waits until
a request succeeds again.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterable
from contextlib import suppress
from time import monotonic
from typing import Any

import structlog

from sluicegate.config.upstream import Upstream
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.cluster.topics import TOPICS_AT_ONCE, DescribedTopics, RequestsFailed, ask_topics
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.in_force import RulesInForce

FIRST_BATCH_SECONDS = 1.0
"""The maximum time in seconds that a topic's first batch waits for its settings."""

MAX_KNOWN = 20_000
"""The maximum number of topics whose settings are kept. The least recently used topics are dropped."""

_MAX_ROUNDS = 10
_MAX_SET_ASIDE = 2000
# This pause is short, because the Produce request that is being validated may create the missing topic.
_ABSENT_SECONDS = 1.0
# The pause between requests if topics were missing, because clients can invent names faster than brokers respond.
_PAUSE_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 30.0
_QUIET_SECONDS = 60.0
_MAX_LOGGED_REASONS = 1000
_USING_FILE = "topic settings cannot be read, only the configuration applies"


class _Round:
    """The topics of one request, and the sessions that wait for its response."""

    def __init__(self) -> None:
        self.topics: dict[str, None] = {}
        self.is_requested = False
        self.ended = asyncio.Event()


class TopicSettingsReader:
    """Passes the cluster's settings to `rules`. Belongs to the event loop."""

    def __init__(self, upstream: Upstream, tls: TlsContext | None, rules: RulesInForce) -> None:
        self._upstream = upstream
        self._tls = tls
        self._rules = rules
        self._known: OrderedDict[str, None] = OrderedDict()  # the most recently used topic is last
        # the times at which unavailable topics may be requested again
        self._set_aside: OrderedDict[str, float] = OrderedDict()
        self._rounds: dict[int, _Round] = {}
        self._round_of: dict[str, int] = {}
        self._next_round = 0
        self._one_at_a_time = asyncio.Lock()
        self._responded = asyncio.Event()
        self._request_task: asyncio.Task[None] | None = None
        self._trusted = True
        self._complaint: str | None = None
        self._logged_reasons: OrderedDict[str, None] = OrderedDict()
        self._quiet_until = 0.0
        self._log = structlog.get_logger("sluicegate.topic_settings")

    def settings_pending(self, topics: Iterable[str]) -> "asyncio.Future[Any] | None":
        """Return None if these topics can be validated now.

        Otherwise return a future that is done within a time limit and never fails.
        """
        known = self._known
        rounds: dict[int, None] | None = None
        for topic in topics:
            if topic in known:
                known.move_to_end(topic)
            else:
                number = self._needs_round(topic)
                if number is not None:
                    rounds = rounds if rounds is not None else {}
                    rounds[number] = None
        if rounds is None:
            return None
        if self._request_task is None:
            self._request_task = asyncio.get_running_loop().create_task(self._request_all())
        if not self._trusted:
            return None
        return asyncio.ensure_future(self._wait([self._rounds[number] for number in rounds if number in self._rounds]))

    async def refresh(self) -> None:
        """Request the settings of all topics in use again. Never raises."""
        topics = list(self._known)
        for first in range(0, len(topics), TOPICS_AT_ONCE):
            if not await self._ask(topics[first : first + TOPICS_AT_ONCE]):
                return

    def close(self) -> None:
        """Stop requesting settings."""
        if self._request_task is not None:
            self._request_task.cancel()

    def _needs_round(self, topic: str) -> int | None:
        """Return the round that requests an unknown topic, or None if the topic must not be requested now."""
        number = self._round_of.get(topic)
        if number is not None:
            return number
        until = self._set_aside.get(topic)
        if until is not None:
            if until > monotonic():
                return None
            del self._set_aside[topic]
        if not is_legal_topic_name(topic):
            return None
        return self._add(topic)

    def _add(self, topic: str) -> int:
        """Add a topic to the last round or to a new one. At the limit, drop the topic that has waited longest."""
        last = self._rounds.get(self._next_round - 1)
        if last is None or last.is_requested or len(last.topics) >= TOPICS_AT_ONCE:
            if len(self._rounds) > _MAX_ROUNDS:
                self._end(next(number for number, one in self._rounds.items() if not one.is_requested))
            last = self._rounds[self._next_round] = _Round()
            self._next_round += 1
        last.topics[topic] = None
        self._round_of[topic] = self._next_round - 1
        return self._next_round - 1

    def _end(self, number: int) -> None:
        ended = self._rounds.pop(number)
        for topic in ended.topics:
            del self._round_of[topic]
        ended.ended.set()

    async def _wait(self, rounds: Collection[_Round]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_BATCH_SECONDS):
                for one in rounds:
                    await one.ended.wait()
                return
        self._trusted = False

    async def _request_all(self) -> None:
        """Send requests until no topic waits. Repeat failed requests with growing pauses."""
        pause = _PAUSE_SECONDS
        try:
            while self._rounds:
                number, round_ = next(iter(self._rounds.items()))
                round_.is_requested = True
                topics = list(round_.topics)
                if await self._ask(topics):
                    self._end(number)
                    pause = _PAUSE_SECONDS
                    if any(topic in self._set_aside for topic in topics):
                        await asyncio.sleep(_PAUSE_SECONDS)
                else:
                    round_.ended.set()
                    with suppress(TimeoutError):  # a successful refresh ends the pause
                        await asyncio.wait_for(self._responded.wait(), pause)
                    pause = min(2 * pause, _MAX_PAUSE_SECONDS)
        finally:
            self._request_task = None

    async def _ask(self, topics: list[str]) -> bool:
        """Request these topics and store their settings. Return whether any settings were received."""
        async with self._one_at_a_time:
            try:
                described = await ask_topics(self._upstream, self._tls, topics)
            except RequestsFailed as error:
                self._trusted = False
                self._responded.clear()
                self._log_readability(str(error))
                return False
        self._trusted = True
        self._responded.set()
        learned: dict[str, ClusterSettings | None] = {}
        for topic in topics:
            self._note(topic, described, learned)
        self._rules.learn(learned)
        self._log_readability(None)
        for reason, complaint in described.complaints.items():
            self._log_topic_complaint(reason, complaint)
        return True

    def _note(self, topic: str, described: DescribedTopics, learned: dict[str, ClusterSettings | None]) -> None:
        """Add the new settings of one topic to `learned`."""
        settings = described.settings.get(topic)
        if settings is not None:
            learned[topic] = settings
            self._known[topic] = None
            if len(self._known) > MAX_KNOWN:
                forgotten, _ = self._known.popitem(last=False)
                learned[forgotten] = None
        elif topic in described.absent:
            learned[topic] = None
            self._put_aside(topic, _ABSENT_SECONDS)
        elif topic in described.rejected or topic not in self._known:
            learned[topic] = None
            self._put_aside(topic, self._upstream.refresh_seconds)

    def _put_aside(self, topic: str, seconds: float) -> None:
        """Do not request a topic again for `seconds`. Meanwhile, the configuration's settings apply."""
        self._known.pop(topic, None)
        self._set_aside[topic] = monotonic() + seconds
        if len(self._set_aside) > _MAX_SET_ASIDE:
            self._set_aside.popitem(last=False)

    def _log_readability(self, complaint: str | None) -> None:
        """Log once when settings cannot be read, and once when they can be read again."""
        if complaint is not None and self._complaint is None:
            self._log.warning(_USING_FILE, reason=complaint)
        elif complaint is None and self._complaint is not None:
            self._log.info("topic settings are read again")
        self._complaint = complaint

    def _log_topic_complaint(self, reason: str, complaint: str) -> None:
        """Log each reason once, for all topics together, at a limited rate: a broker may report any
        number of reasons.
        """
        now = monotonic()
        if reason in self._logged_reasons or now < self._quiet_until:
            return
        self._quiet_until = now + _QUIET_SECONDS
        self._logged_reasons[reason] = None
        if len(self._logged_reasons) > _MAX_LOGGED_REASONS:
            self._logged_reasons.popitem(last=False)
        self._log.warning(_USING_FILE, reason=complaint)
