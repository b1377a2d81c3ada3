"""Asks the cluster which topics exist (Metadata) and what their settings are (DescribeConfigs).

Only commands that inspect a whole cluster list all topics. A running proxy asks only about topics to which clients
write. If a request for settings fails, the proxy splits it in two and repeats both halves, so that one topic that makes
a broker fail does not affect the others.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from sluicegate.config.upstream import Upstream
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import ErrorCode, SenderError, error_name
from sluicegate.protocol.messages.cluster import (
    DESCRIBE_CONFIGS_REQUEST,
    DESCRIBE_CONFIGS_RESPONSE,
    METADATA_REQUEST,
    METADATA_RESPONSE,
    NO_OPERATIONS,
)
from sluicegate.protocol.messages.schema import Value
from sluicegate.proxy.cluster.broker_client import BrokerClient, NoBrokerResponses, ask_any_broker, parse_response
from sluicegate.proxy.cluster.response_bodies import BrokerResponse, read_response
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, TlsContext, context_for_brokers
from sluicegate.validation.cluster_settings import KEYS, ClusterSettings, settings_from

# This size is enough for 10,000 topics with a few hundred partitions each.
_MAX_RESPONSE_BYTES = 256 << 20
_MAX_ELEMENTS = 50_000_000
_ALL_TOPICS_SINCE = 1
_NO_CREATION_SINCE = 4
_LIST_SECONDS = 3
_OPERATIONS_SINCE = 8


@dataclass(frozen=True, slots=True)
class MetadataTopic:
    """A topic in a Metadata response.

    `operations` has a bit for each of Kafka's AclOperation codes that the login may perform. It is None if the broker
    does not report the operations.
    """

    name: str
    is_internal: bool
    operations: int | None


async def all_topics(upstream: Upstream, tls: TlsContext | None) -> list[MetadataTopic]:
    """Return the topics by name. Raises NoBrokerResponses, also for an invalid response."""
    _, topics = await ask_any_broker(upstream, tls, _ask_for_all)
    return topics


@dataclass(frozen=True, slots=True)
class ListedNames:
    """The names of the topics that the cluster lists for the proxy's own login.

    If the names are unknown, `reason` explains why. `is_hidden` is true if the login may not describe the topic in
    question. Then it is unknown whether the topic exists.
    """

    names: tuple[str, ...] = ()
    reason: str | None = None
    is_hidden: bool = False


def list_names_now(upstream: Upstream, name: str | None) -> ListedNames:
    """List the topics over a separate connection.

    Blocks for up to a few seconds, so an event loop must not call it. `name` is the topic in question, or None.
    """

    async def list_names_of(client: BrokerClient) -> ListedNames:
        names = tuple(topic.name for topic in await _ask_for_all(client))
        return ListedNames(names, is_hidden=name is not None and name not in names and await _is_hidden(client, name))

    async def read() -> ListedNames:
        async with asyncio.timeout(_LIST_SECONDS):
            _, found = await ask_any_broker(upstream, tls, list_names_of)
            return found

    try:
        tls = None if upstream.tls is None else context_for_brokers(upstream.tls)
        return asyncio.run(read())
    except TimeoutError:
        return ListedNames(reason=f"no broker responded within {_LIST_SECONDS} s")
    except (BadTlsFiles, NoBrokerResponses, SenderError) as error:
        return ListedNames(reason=str(error))


async def offers_settings(upstream: Upstream, tls: TlsContext | None) -> bool:
    """Return whether the brokers have the API that reads topics' settings. Raises NoBrokerResponses."""

    async def list_names_of(client: BrokerClient) -> bool:
        return client.version_of(ApiKey.DESCRIBE_CONFIGS) >= 0

    _, offered = await ask_any_broker(upstream, tls, list_names_of)
    return offered


async def _ask_for_all(client: BrokerClient) -> list[MetadataTopic]:
    version = max(client.version_of(ApiKey.METADATA), _ALL_TOPICS_SINCE)
    body = METADATA_REQUEST.build(
        {
            "topics": None,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": version >= _OPERATIONS_SINCE,
        },
        version,
    )
    response = await client.call(ApiKey.METADATA, version, body, _MAX_RESPONSE_BYTES)
    return await parse_response(_read_all, response, version)


async def _is_hidden(client: BrokerClient, name: str) -> bool:
    """Return whether the login may not describe this topic, so that lists omit it."""
    version = client.version_of(ApiKey.METADATA)
    if version < _NO_CREATION_SINCE:
        return False
    body = METADATA_REQUEST.build({"topics": [{"name": name}], "allow_auto_topic_creation": False}, version)
    response = await client.call(ApiKey.METADATA, version, body, _MAX_RESPONSE_BYTES)
    return await parse_response(_has_hidden, response, version)


def _has_hidden(response: BrokerResponse, version: int) -> bool:
    topics = read_response(METADATA_RESPONSE, response, version, _MAX_ELEMENTS)["topics"]
    return any(topic["error_code"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED for topic in topics)


def _read_all(response: BrokerResponse, version: int) -> list[MetadataTopic]:
    topics = read_response(METADATA_RESPONSE, response, version, _MAX_ELEMENTS)["topics"]
    return sorted(
        (
            MetadataTopic(topic["name"], topic["is_internal"], _known_operations(topic["topic_authorized_operations"]))
            for topic in topics
            if not topic["error_code"] and topic["name"]
        ),
        key=lambda topic: topic.name,
    )


def _known_operations(operations: int) -> int | None:
    return None if operations == NO_OPERATIONS else operations


SETTINGS_OFF = "upstream.topic_settings is off"
_READ_SECONDS = 5

TOPICS_AT_ONCE = 500
"""The maximum number of topics in one request."""

_TOPIC_RESOURCE = 2
_TOPIC_CONFIG = 1  # the ConfigSource of a topic's own setting in Kafka
_MAX_WORDS = 300
# This number is enough to isolate one failing topic among 500 and to request the others.
_MAX_REQUESTS = 20


class RequestsFailed(Exception):
    """No broker reported any settings. The message gives the reason."""


@dataclass(slots=True)
class DescribedTopics:
    """The received settings, the topics that do not exist, and the topics for which no settings were reported.

    `complaints` explain why settings are missing, with one entry per reason, including topics without a response.
    """

    settings: dict[str, ClusterSettings] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    rejected: set[str] = field(default_factory=set)
    complaints: dict[str, str] = field(default_factory=dict)

    def add(self, more: "DescribedTopics") -> None:
        """Add the result of another request."""
        self.settings |= more.settings
        self.absent |= more.absent
        self.rejected |= more.rejected
        self.complaints = more.complaints | self.complaints

    def add_failure(self, reason: str, topic: str | None = None) -> None:
        """Record why settings are missing. `topic` is set if the reason concerns only that topic."""
        self.complaints.setdefault(reason, reason if topic is None else f"{topic}: {reason}")


@dataclass(frozen=True, slots=True)
class _RequestRejected:
    """The broker was reached but did not respond to this request."""

    reason: str


async def ask_topics(upstream: Upstream, tls: TlsContext | None, topics: Sequence[str]) -> DescribedTopics:
    """Request these topics' settings over one connection at a time. Raises RequestsFailed if no
    settings are received.
    """
    found = DescribedTopics()
    waiting = [list(topics)]
    received = False
    for _ in range(_MAX_REQUESTS):
        if not waiting:
            break
        asked = waiting.pop()
        try:
            _, response = await ask_any_broker(upstream, tls, partial(_ask, asked))
        except NoBrokerResponses as error:
            found.add_failure(str(error))
            break
        if isinstance(response, _RequestRejected):
            found.add_failure(response.reason, _shown(asked))
            if len(asked) > 1:
                middle = len(asked) // 2
                waiting += [asked[middle:], asked[:middle]]
        else:
            received = True
            found.add(response)
    if not received:
        raise RequestsFailed(next(reversed(found.complaints.values())))
    return found


@dataclass(frozen=True, slots=True)
class SettingsRead:
    """The cluster's settings for one topic. If there are none, `reason` explains why.

    `shared` contains the topic settings that the proxies share (`sluicegate.*`).
    """

    settings: ClusterSettings | None = None
    reason: str | None = None
    shared: Mapping[str, str] = field(default_factory=dict)


async def read_settings(upstream: Upstream, tls: TlsContext | None, topic: str) -> SettingsRead:
    """Read one topic's settings as a running proxy does. Takes a few seconds at most."""
    if not upstream.topic_settings:
        return SettingsRead(reason=SETTINGS_OFF)
    try:
        async with asyncio.timeout(_READ_SECONDS):
            described = await ask_topics(upstream, tls, [topic])
    except TimeoutError:
        return SettingsRead(reason=f"no broker responded within {_READ_SECONDS} s")
    except RequestsFailed as error:
        return SettingsRead(reason=str(error))
    if topic in described.absent:
        return SettingsRead(reason=f"the cluster has no topic {topic}")
    settings = described.settings.get(topic)
    return SettingsRead(settings, None if settings else next(iter(described.complaints.values()), None))


def read_settings_now(upstream: Upstream, topic: str) -> SettingsRead:
    """Read one topic's settings over a separate connection. Blocks, so an event loop must not call it."""
    try:
        tls = None if upstream.tls is None else context_for_brokers(upstream.tls)
    except BadTlsFiles as error:
        return SettingsRead(reason=str(error))
    return asyncio.run(read_settings(upstream, tls, topic))


async def ask_many_topics(upstream: Upstream, tls: TlsContext | None, topics: Sequence[str]) -> DescribedTopics:
    """Request the settings of any number of topics, in several requests. Raises RequestsFailed."""
    found = DescribedTopics()
    for first in range(0, len(topics), TOPICS_AT_ONCE):
        found.add(await ask_topics(upstream, tls, topics[first : first + TOPICS_AT_ONCE]))
    return found


async def _ask(topics: Sequence[str], client: BrokerClient) -> DescribedTopics | _RequestRejected:
    resources = [
        {"resource_type": _TOPIC_RESOURCE, "resource_name": topic, "configuration_keys": list(KEYS)} for topic in topics
    ]
    version = client.version_of(ApiKey.DESCRIBE_CONFIGS)
    if version < 0:
        raise SenderError("the broker does not support DescribeConfigs")
    body = DESCRIBE_CONFIGS_REQUEST.build({"resources": resources}, version)
    try:
        response = await client.call(ApiKey.DESCRIBE_CONFIGS, version, body)
        return await parse_response(partial(_read, topics), response, version)
    except (EOFError, ConnectionError, SenderError) as error:
        return _RequestRejected(str(error)[:_MAX_WORDS])


def _read(asked: Sequence[str], response: BrokerResponse, version: int) -> DescribedTopics:
    """Parse a response. Raises MalformedMessage."""
    found = DescribedTopics()
    left = dict.fromkeys(asked)
    for result in read_response(DESCRIBE_CONFIGS_RESPONSE, response, version)["results"] or ():
        topic = result["resource_name"]
        if result["resource_type"] != _TOPIC_RESOURCE or topic not in left:
            continue  # this topic was not requested
        del left[topic]
        complaint = _read_one(topic, result, found)
        if complaint is not None:
            found.rejected.add(topic)
            found.add_failure(complaint[:_MAX_WORDS], f"topic {topic}")
    if left:
        found.add_failure("missing in the response", _shown(list(left)))
    return found


def _read_one(topic: str, result: Value, found: DescribedTopics) -> str | None:
    """Return the error in one topic's entry, or None."""
    code = result["error_code"]
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        found.absent.add(topic)
        return None
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return f"{error_name(code)}: allow the proxy's principal DescribeConfigs, or set upstream.topic_settings: false"
    if code:
        return f"{error_name(code)}, {result['error_message'] or 'the broker gives no reason'}"
    try:
        entries = result["configs"] or ()
        set_on_topic = [entry["name"] for entry in entries if _is_set_on_topic(entry)]
        found.settings[topic] = settings_from({entry["name"]: entry["value"] for entry in entries}, set_on_topic)
    except ValueError as error:
        return str(error)
    return None


def _is_set_on_topic(entry: Value) -> bool:
    """Return whether a setting is the topic's own. Version 0 reports only whether it is a default."""
    source = entry.get("config_source")
    return source == _TOPIC_CONFIG or (source is None and not entry["is_default"])


def _shown(topics: Sequence[str]) -> str:
    return f"topic {topics[0]}" if len(topics) == 1 else f"{len(topics)} topics from {topics[0]} on"
