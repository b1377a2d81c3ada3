"""Checks the proxy's own permissions on topics, and compares the cluster's settings with the configuration file."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from sluicegate.config.files.source import Path, Source
from sluicegate.config.model import Config
from sluicegate.config.teams import Floor, Owner
from sluicegate.config.topics import Topic
from sluicegate.config.values.quantity import duration_text
from sluicegate.config.values.topic_pattern import exact_name_of
from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.proxy.cluster.broker_client import NoBrokerResponses
from sluicegate.proxy.cluster.topics import MetadataTopic, RequestsFailed, all_topics, ask_many_topics
from sluicegate.proxy.doctor.check_result import CheckResult, Level, names_shortened
from sluicegate.proxy.doctor.checks import CheckedCluster, ClusterCheck
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.validation.cluster_settings import (
    AFTER_MAX,
    BEFORE_MAX,
    CLEANUP_POLICY,
    MAX_MESSAGE_BYTES,
    ClusterSettings,
)
from sluicegate.validation.from_keys import compile_policies
from sluicegate.validation.origins import NOWHERE
from sluicegate.validation.policy import TopicPolicy
from sluicegate.validation.topic_patterns import TopicPatterns

MOST_TOPICS = 10_000
"""The maximum number of topics to compare, in alphabetical order."""
_MOST_COMPLAINTS = 5

_ALLOW = "allow the proxy's login DESCRIBE_CONFIGS on topics"
_ALLOW_WRITE = "allow the proxy's login WRITE on it"
_READ_IT = "set upstream.topic_settings: true"

# The codes of Kafka's AclOperation.
_READ, _WRITE, _DESCRIBE_CONFIGS = 3, 4, 10
_EVENTS = "violations.topic"


def permissions(config: Config, topics: Sequence[MetadataTopic]) -> Iterator[CheckResult]:
    """Check the operations that brokers report as allowed for the login (KIP-430)."""
    about = "permissions"
    if not topics:
        yield CheckResult(
            about, Level.NOTE, "the proxy's login sees no topics: there are none, or DESCRIBE is not allowed"
        )
    if config.upstream.topic_settings:
        hidden = [topic.name for topic in topics if not _may(topic, _DESCRIBE_CONFIGS)]
        if hidden:
            found = (
                f"DESCRIBE_CONFIGS is not allowed on {names_shortened(hidden)}: only the file's limits apply to them"
            )
            yield CheckResult(about, Level.WARNING, found, _ALLOW)
        elif topics:
            yield CheckResult(about, Level.OK, f"the proxy's login may read the settings of all {len(topics)} topics")
    own = [(_EVENTS, config.violations.topic)]
    own += [
        (f"quarantine of {topic.match}{_owned(topic.owner or config.defaults.owner)}", topic.quarantine)
        for topic in config.topics
    ]
    there = {topic.name: topic for topic in topics}
    for key, name in {name: (key, name) for key, name in own if name is not None}.values():
        topic = there.get(name)
        if topic is None:
            found = f"topic {name} does not exist, or the proxy's login does not see it"
            yield CheckResult(
                key, Level.FAILURE, found, f"create {name}, and allow the proxy's login WRITE and DESCRIBE on it"
            )
        elif not _may(topic, _WRITE):
            yield CheckResult(
                key, Level.FAILURE, f"WRITE is not allowed on topic {name}", "allow the proxy's login WRITE on it"
            )
        elif key == _EVENTS and not _may(topic, _READ):
            found = f"READ is not allowed on topic {name}: sluicegate who --days and the web UI cannot read it"
            yield CheckResult(key, Level.NOTE, found, "allow the proxy's login READ on it")
        else:
            yield CheckResult(key, Level.OK, f"may write to topic {name}")


def _owned(owner: Owner | None) -> str:
    """Return the owner as a suffix for the name of a topic or a pattern."""
    return "" if owner is None else f" (owner: {owner})"


def _may(topic: MetadataTopic, operation: int) -> bool:
    """Return whether an operation is allowed.

    Return True if brokers do not report it, because later requests will reveal it.
    """
    return topic.operations is None or bool(topic.operations >> operation & 1)


def differences(config: Config, settings: Mapping[str, ClusterSettings]) -> Iterator[CheckResult]:
    """Yield the differences between file and cluster. Topics of one owner with the same difference share one result."""
    plain = [(topic.match, replace(topic, rules=None)) for topic in config.topics]
    floor = [replace(each, rules=None) for each in config.floor]
    policies = compile_policies(replace(config.defaults, rules=None), plain, floor=floor)
    groups: dict[tuple[tuple[Level, str, str], str], list[str]] = {}
    for name, of_cluster in settings.items():
        policy = policies.policy_of(name)
        for difference in _differences(policy, of_cluster, config.upstream.topic_settings):
            groups.setdefault((difference, _owned(policy.owner)), []).append(name)
    for ((level, found, advice), owned), names in groups.items():
        yield CheckResult(f"{_called(names)}{owned}", level, found, advice)
    if settings and not groups:
        yield CheckResult(
            "topic limits", Level.OK, f"the file agrees with the settings of the {len(settings)} topics in the cluster"
        )


def unused_entries(config: Config, names: Sequence[str], source: Source = NOWHERE) -> Iterator[CheckResult]:
    """Yield the configuration entries that apply to no topic of the cluster, with their places in `source`."""
    sections: tuple[tuple[str, Sequence[Topic | Floor]], ...] = (("topics", config.topics), ("floor", config.floor))
    for section, entries in sections:
        patterns = TopicPatterns([entry.match for entry in entries])
        used = {patterns.first_match(name) for name in names}
        for place, entry in enumerate(entries):
            if place not in used:
                owned = _owned(entry.owner or config.defaults.owner) if isinstance(entry, Topic) else ""
                found = f"{entry.match}{owned} is not the first match of any topic in the cluster"
                yield _unused((section, place), entry.match, found, names, source)
    for path, pattern in _named_topics(config):
        matching = TopicPatterns([pattern])
        if all(matching.first_match(name) is None for name in names):
            yield _unused(path, pattern, f"{pattern} matches no topic in the cluster", names, source)


def _named_topics(config: Config) -> Iterator[tuple[Path, str]]:
    """Yield each topic pattern outside `topics` and `floor`, with its path."""
    for i, exempt in enumerate(config.exempt):
        yield from ((("exempt", i, "topics"), pattern) for pattern in exempt.topics or ())
    for i, quota in enumerate(config.quotas):
        if quota.topic is not None:
            yield ("quotas", i, "topic"), quota.topic
    for i, rule in enumerate(config.requests):
        if rule.match.topics is not None:
            yield ("requests", i, "match", "topics"), rule.match.topics


def _unused(path: Path, pattern: str, found: str, names: Sequence[str], source: Source) -> CheckResult:
    near = get_close_matches(pattern, names, 1) if exact_name_of(pattern) is not None else ()
    meant = f"; did you mean {near[0]}?" if near else ""
    where = f"{source.place_of(path)}: " if source.places else ""
    advice = "check its spelling with sluicegate explain FILE TOPIC"
    return CheckResult(source.key_of(path), Level.WARNING, f"{where}{found}{meant}", advice)


def _called(names: list[str]) -> str:
    return f"topic {names[0]}" if len(names) == 1 else f"{len(names)} topics: {names_shortened(names)}"


def _differences(file: TopicPolicy, cluster: ClusterSettings, read: bool) -> Iterator[tuple[Level, str, str]]:
    """Yield the differences for one topic.

    `read` is true if the proxy reads the cluster's settings, so that the stricter value applies.
    """
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
        both = f"{key} is {_shown(key, ours)} in the file, {_shown(key, theirs)} on the cluster"
        if ours is not None and ours < theirs:
            yield Level.NOTE, f"{both}: the file is stricter, and applies", ""
        elif not read:
            yield Level.WARNING, f"{both}: the broker rejects batches that the proxy forwards", _READ_IT
        elif ours not in (nothing, LONG_MAX):
            advice = "raise it on the cluster, or lower it in the file"
            yield Level.WARNING, f"{both}, which is stricter and applies", advice
    if file.compacted and not cluster.compacted:
        found = f"{CLEANUP_POLICY} is compact only in the file: the proxy rejects null keys, the broker would not"
        yield Level.NOTE, found, ""
    elif cluster.compacted and not file.compacted and not read:
        found = f"{CLEANUP_POLICY} is compact only on the cluster: the broker rejects null keys that the proxy forwards"
        yield Level.WARNING, found, _READ_IT
    if cluster.timestamp_type is not None and file.timestamp_type is not cluster.timestamp_type and not read:
        ours_type, theirs_type = file.timestamp_type.value, cluster.timestamp_type.value
        found = f"message.timestamp.type is {ours_type} in the file, {theirs_type} on the cluster"
        yield Level.WARNING, found, _READ_IT


def _shown(key: str, bound: int | None) -> str:
    if bound is None or bound == LONG_MAX:
        return "not set"
    return f"{bound} bytes" if key == MAX_MESSAGE_BYTES else f"{duration_text(bound)} ({bound} ms)"


async def check_topics(cluster: CheckedCluster) -> AsyncIterator[CheckResult]:
    """Compare the configuration's permissions, limits and entries with the cluster's topics."""
    config, tls = cluster.config, cluster.tls
    try:
        shown = [topic for topic in await all_topics(config.upstream, tls) if not topic.is_internal]
    except (NoBrokerResponses, SenderError) as error:
        yield CheckResult("topics", Level.NOT_CHECKED, str(error))
        return
    for result in permissions(config, shown):
        yield result
    if len(shown) > MOST_TOPICS:
        found = f"compares the first {MOST_TOPICS} of {len(shown)} topics, by name"
        yield CheckResult("topic limits", Level.NOTE, found)
    async for result in _limits(cluster, tls, shown[:MOST_TOPICS]):
        yield result


async def _limits(
    cluster: CheckedCluster, tls: TlsContext | None, shown: list[MetadataTopic]
) -> AsyncIterator[CheckResult]:
    config = cluster.config
    names_of_all = [topic.name for topic in shown]
    try:
        asked = await ask_many_topics(config.upstream, tls, names_of_all) if shown else None
    except RequestsFailed as error:
        yield CheckResult(
            "topic limits", Level.NOT_CHECKED, str(error), "allow the proxy's login DESCRIBE_CONFIGS on topics"
        )
        return
    if asked is not None:
        for complaint in list(asked.complaints.values())[:_MOST_COMPLAINTS]:
            yield CheckResult("topic limits", Level.NOT_CHECKED, complaint)
        for result in differences(config, asked.settings):
            yield result
    for result in unused_entries(config, names_of_all, cluster.source):
        yield result


CHECK = ClusterCheck(20, ("permissions", "topic limits"), check_topics)
