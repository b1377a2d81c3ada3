"""The cluster's topics: what the proxy's own login may do with them, and where their settings and the file's differ."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace

from sluicegate.config.model import Config
from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.proxy.cluster.all_topics import ListedTopic, all_topics
from sluicegate.proxy.cluster.broker_client import NoBrokerResponses
from sluicegate.proxy.cluster.topic_configs import RequestsFailed, ask_many_topics
from sluicegate.proxy.doctor.checks import Cluster, ClusterCheck
from sluicegate.proxy.doctor.finding import Finding, Level, some_of
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.validation.cluster_settings import (
    AFTER_MAX,
    BEFORE_MAX,
    CLEANUP_POLICY,
    MAX_MESSAGE_BYTES,
    ClusterSettings,
)
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.rulebook import compile_policies
from sluicegate.validation.topic_patterns import TopicPatterns

MOST_TOPICS = 10_000
"""So many are looked at, by their names' order."""
_MOST_COMPLAINTS = 5

# Kafka's AclOperation.
_WRITE, _DESCRIBE_CONFIGS = 4, 10


def permissions(config: Config, topics: Sequence[ListedTopic]) -> Iterator[Finding]:
    """What the login may do, by what brokers say of it (KIP-430)."""
    about = "permissions"
    if not topics:
        yield Finding(about, Level.NOTE, "no topic is shown to the proxy: there is none, or DESCRIBE is not allowed")
    if config.upstream.topic_settings:
        hidden = [topic.name for topic in topics if not _may(topic, _DESCRIBE_CONFIGS)]
        if hidden:
            said = f"DESCRIBE_CONFIGS is not allowed on {some_of(hidden)}: of these only the file's limits hold"
            yield Finding(about, Level.WARNING, said, "allow it, or set upstream.topic_settings: false")
        elif topics:
            yield Finding(about, Level.GOOD, f"may read the settings of all {len(topics)} topics")
    own = [("violations.topic", config.violations.topic)]
    own += [(f"quarantine of {topic.match}", topic.quarantine) for topic in config.topics]
    there = {topic.name: topic for topic in topics}
    for key, name in {name: (key, name) for key, name in own if name is not None}.values():
        topic = there.get(name)
        if topic is None:
            said = f"topic {name} is not there, or not shown to the proxy's login"
            yield Finding(
                key, Level.FAULT, said, f"create {name}, and allow the proxy's login WRITE and DESCRIBE on it"
            )
        elif not _may(topic, _WRITE):
            yield Finding(key, Level.FAULT, f"WRITE is not allowed on topic {name}", "allow it to the proxy's login")
        else:
            yield Finding(key, Level.GOOD, f"may write to topic {name}")


def _may(topic: ListedTopic, operation: int) -> bool:
    """Where brokers do not tell, what is asked later tells."""
    return topic.operations is None or bool(topic.operations >> operation & 1)


def differences(config: Config, settings: Mapping[str, ClusterSettings]) -> Iterator[Finding]:
    """Where the file and the cluster say different things of a topic; those that are alike share a line."""
    plain = [(topic.match, replace(topic, rules=None)) for topic in config.topics]
    policies = compile_policies(replace(config.defaults, rules=None), plain)
    groups: dict[tuple[Level, str, str], list[str]] = {}
    for name, told in settings.items():
        for level, said, advice in _differences(policies.of(name), told, config.upstream.topic_settings):
            groups.setdefault((level, said, advice), []).append(name)
    for (level, said, advice), names in groups.items():
        yield Finding(_called(names), level, said, advice)
    if settings and not groups:
        yield Finding("topic limits", Level.GOOD, f"the file and the {len(settings)} topics of the cluster agree")


def unused_entries(config: Config, names: Sequence[str]) -> Iterator[Finding]:
    """Entries of `topics` that no topic of the cluster comes to."""
    patterns = TopicPatterns([topic.match for topic in config.topics])
    used = {patterns.first_match(name) for name in names}
    for place, topic in enumerate(config.topics):
        if place not in used:
            said = f"{topic.match} is the first match of no topic that the cluster has now"
            yield Finding(f"topics[{place}]", Level.NOTE, said, "a name mistyped? sluicegate explain FILE TOPIC says")


def _called(names: list[str]) -> str:
    return f"topic {names[0]}" if len(names) == 1 else f"{len(names)} topics: {some_of(names)}"


def _differences(file: TopicPolicy, cluster: ClusterSettings, read: bool) -> Iterator[tuple[Level, str, str]]:
    """`read`: whether the proxy reads the cluster's settings, so that the stricter of both holds."""
    if not file.checked:
        return
    bounds = (
        (BEFORE_MAX, file.before_max_ms, cluster.before_max_ms, LONG_MAX),
        (AFTER_MAX, file.after_max_ms, cluster.after_max_ms, LONG_MAX),
        (MAX_MESSAGE_BYTES, file.max_message_bytes, cluster.max_message_bytes, None),
    )
    for key, ours, theirs, nothing in bounds:
        if ours == theirs or theirs is None:
            continue
        if ours is not None and ours < theirs:
            said = f"{key} is {ours} in the file, {_shown(theirs)} on the cluster: the file is stricter, and holds"
            yield Level.NOTE, said, "nothing, if that is what you want"
        elif not read:
            said = f"{key} is {_shown(ours)} in the file, {theirs} on the cluster: the broker rejects what passes here"
            yield Level.WARNING, said, "set the cluster's in the file, or upstream.topic_settings: true"
        elif ours != nothing:
            said = f"{key} is {ours} in the file, {theirs} on the cluster, which is stricter and holds"
            yield Level.WARNING, said, "raise it on the cluster, or lower it in the file, so that both say what holds"
    if file.compacted and not cluster.compacted:
        said = f"{CLEANUP_POLICY} is compact in the file alone: null keys are rejected that the broker would take"
        yield Level.NOTE, said, "nothing, if that is what you want"
    elif cluster.compacted and not file.compacted and not read:
        said = f"{CLEANUP_POLICY} is compact on the cluster alone: the broker rejects null keys that pass here"
        yield Level.WARNING, said, "set it in the file, or upstream.topic_settings: true"
    if cluster.timestamp_type is not None and file.timestamp_type is not cluster.timestamp_type and not read:
        said = f"message.timestamp.type is {cluster.timestamp_type.value} on the cluster, not so in the file"
        yield Level.WARNING, said, "set it in the file, or upstream.topic_settings: true"


def _shown(bound: int | None) -> str:
    return "not set" if bound is None or bound == LONG_MAX else str(bound)


async def _findings(cluster: Cluster) -> AsyncIterator[Finding]:
    config, tls = cluster.config, cluster.tls
    try:
        shown = [topic for topic in await all_topics(config.upstream, tls) if not topic.is_internal]
    except (NoBrokerResponses, SenderError) as error:
        yield Finding("topics", Level.UNSEEN, str(error), "ask again")
        return
    for finding in permissions(config, shown):
        yield finding
    if len(shown) > MOST_TOPICS:
        said = f"of {len(shown)} topics the first {MOST_TOPICS} by name are compared"
        yield Finding("topic limits", Level.NOTE, said)
    async for finding in _limits(config, tls, shown[:MOST_TOPICS]):
        yield finding


async def _limits(config: Config, tls: TlsContext | None, shown: list[ListedTopic]) -> AsyncIterator[Finding]:
    names_of_all = [topic.name for topic in shown]
    try:
        told = await ask_many_topics(config.upstream, tls, names_of_all) if shown else None
    except RequestsFailed as error:
        yield Finding("topic limits", Level.UNSEEN, str(error), "allow the proxy's login DESCRIBE_CONFIGS on topics")
        return
    if told is not None:
        for complaint in list(told.complaints.values())[:_MOST_COMPLAINTS]:
            yield Finding("topic limits", Level.UNSEEN, complaint)
        for finding in differences(config, told.settings):
            yield finding
    for finding in unused_entries(config, names_of_all):
        yield finding


CHECK = ClusterCheck(20, ("permissions", "topic limits"), _findings)
