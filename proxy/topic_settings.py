"""Asks the cluster what topics are set to (`upstream.topic_settings`), so that the file need not repeat it.

A topic is asked for when it is first written to, before its first batch is judged, and again every
`upstream.refresh_seconds`. What cannot be read is said once; the file's settings hold then.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any

import structlog

from config.model import Upstream
from protocol.api import ApiKey
from protocol.errors import ErrorCode
from protocol.messages import describe_configs
from protocol.messages.schema import Value
from proxy.broker_client import BrokerClient, NoBrokerAnswers, ask_any_broker
from proxy.tls import TlsContext
from validation.cluster_settings import KEYS, settings_from
from validation.policies import TopicPolicies

_TOPIC_RESOURCE = 2
_TOPICS_AT_ONCE = 500
_MAX_TOPICS = 100_000
# A topic that is not there may be made by the very request that is judged.
_ABSENT_SECONDS = 1.0


class TopicSettings:
    """Teaches `policies` what the cluster says. All of it runs on the event loop."""

    def __init__(self, upstream: Upstream, tls: TlsContext | None, policies: TopicPolicies) -> None:
        self._upstream = upstream
        self._tls = tls
        self._policies = policies
        self._ask_again: dict[str, float] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._complaint: str | None = None
        self._log = structlog.get_logger("sluicegate.topic_settings")

    def known_soon(self, topics: Iterable[str]) -> "asyncio.Future[Any] | None":
        """None when these topics' settings are known; else what to wait for, which never fails."""
        now = time.monotonic()
        needed = [t for t in dict.fromkeys(topics) if t in self._asking or self._ask_again.get(t, 0.0) <= now]
        if not needed:
            return None
        fresh = [topic for topic in needed if topic not in self._asking]
        if fresh:
            task = asyncio.get_running_loop().create_task(self._ask(fresh))
            self._asking |= dict.fromkeys(fresh, task)
            task.add_done_callback(lambda _: self._asked(fresh))
        return asyncio.gather(*{self._asking[topic] for topic in needed})

    def _asked(self, topics: Iterable[str]) -> None:
        for topic in topics:
            del self._asking[topic]

    async def refresh(self) -> None:
        """Ask again for all topics that were ever written to."""
        topics = list(self._ask_again)
        for first in range(0, len(topics), _TOPICS_AT_ONCE):
            await self._ask(topics[first : first + _TOPICS_AT_ONCE])

    async def _ask(self, topics: Sequence[str]) -> None:
        """Never fails."""
        if len(self._ask_again) > _MAX_TOPICS:
            self._ask_again.clear()
        self._ask_again |= dict.fromkeys(topics, time.monotonic() + 2 * self._upstream.refresh_seconds)
        resources = [
            {"resource_type": _TOPIC_RESOURCE, "resource_name": topic, "configuration_keys": list(KEYS)}
            for topic in topics
        ]

        async def ask(client: BrokerClient) -> Value:
            schemas = describe_configs.REQUEST, describe_configs.RESPONSE
            return await client.ask(ApiKey.DESCRIBE_CONFIGS, *schemas, {"resources": resources})

        try:
            _, answer = await ask_any_broker(self._upstream, self._tls, ask)
        except NoBrokerAnswers as error:
            self._say(str(error))
            return
        complaints = [complaint for result in answer["results"] if (complaint := self._learn(result)) is not None]
        self._say(complaints[0] if complaints else None)

    def _learn(self, result: Value) -> str | None:
        topic, code = result["resource_name"], result["error_code"]
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._policies.learn(topic, None)
            self._ask_again[topic] = time.monotonic() + _ABSENT_SECONDS
            return None
        if code:
            self._policies.learn(topic, None)
            return f"topic {topic}: error {code}, {result['error_message']}"
        try:
            settings = settings_from({entry["name"]: entry["value"] for entry in result["configs"]})
        except ValueError as error:
            return f"topic {topic}: {error}"
        self._policies.learn(topic, settings)
        return None

    def _say(self, complaint: str | None) -> None:
        if complaint is not None and self._complaint is None:
            self._log.warning("topic settings cannot be read, going on with the file", reason=complaint)
        elif complaint is None and self._complaint is not None:
            self._log.info("topic settings are read again")
        self._complaint = complaint
