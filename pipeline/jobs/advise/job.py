"""Runs `sluicegate-spark advise`: recommends limits from the topics' profiles.

From the bounds in a profile, the job computes how many records each limit would reject, and the tightest limits that
reject hardly any valid record.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.profile.cells import KAFKA_4_AFTER_MAX_MS
from sluicegate.pipeline.jobs.profile.invalid_timestamps import InvalidTimestampKind
from sluicegate.pipeline.jobs.profile.job import profile
from sluicegate.pipeline.jobs.repair.settings import settings_of
from sluicegate.pipeline.report.wording import duration
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.runs.results import SUMMARY, Results
from sluicegate.pipeline.source.topics import Topics
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.rules.rule import Mode

AHEAD, BEHIND = "ahead", "behind"
_FINEST_MS = 60_000
"""Append times are estimated to within about a minute, so no tighter limit is recommended."""
_KEYS = {BEHIND: "message.timestamp.before.max.ms", AHEAD: "message.timestamp.after.max.ms"}


@dataclass(frozen=True, slots=True)
class BoundCount:
    """The number of a topic's records beyond a bound (ms) on one side.

    `beyond` counts the records that are certainly beyond the bound, `at_most` also those that may be. Of the topic's
    `valid` records, `valid_beyond` are beyond it.
    """

    topic: str
    side: str
    bound_ms: int
    beyond: int
    records: int
    valid_beyond: int
    valid: int
    at_most: int


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit with the number of records that it would certainly have rejected, and at most (`rejected_at_most`).

    `bound_ms` is LONG_MAX if no bound fits.
    """

    side: str
    bound_ms: int
    rejected: int
    valid_rejected: int
    rejected_at_most: int = 0


@dataclass(frozen=True, slots=True)
class Advice:
    """The tightest limits for one topic, and the effect of Kafka 4's default."""

    topic: str
    records: int
    behind: Limit
    ahead: Limit
    kafka_4: Limit
    broker_sets_times: bool = False


def advise(bounds: Iterable[BoundCount], at_most: float, stamped: frozenset[str] = frozenset()) -> list[Advice]:
    """Return advice for each topic with records.

    `at_most` is the share of valid records that a limit may reject. `stamped` are topics with LogAppendTime, for which
    a limit would only reject records that the topic accepts.
    """
    of_topic: dict[str, list[BoundCount]] = {}
    for each in sorted(bounds, key=lambda b: b.bound_ms):
        of_topic.setdefault(each.topic, []).append(each)
    return [
        _no_limits(topic, its[0].records) if topic in stamped else _advice(topic, its, at_most)
        for topic, its in sorted(of_topic.items())
    ]


def _no_limits(topic: str, records: int) -> Advice:
    behind, ahead = (Limit(side, LONG_MAX, 0, 0) for side in (BEHIND, AHEAD))
    return Advice(topic, records, behind, ahead, Limit(AHEAD, KAFKA_4_AFTER_MAX_MS, 0, 0), broker_sets_times=True)


def _advice(topic: str, bounds: Sequence[BoundCount], at_most: float) -> Advice:
    kafka_4 = next(b for b in bounds if b.side == AHEAD and b.bound_ms == KAFKA_4_AFTER_MAX_MS)
    return Advice(
        topic,
        bounds[0].records,
        _tightest([b for b in bounds if b.side == BEHIND], at_most),
        _tightest([b for b in bounds if b.side == AHEAD], at_most),
        Limit(AHEAD, kafka_4.bound_ms, kafka_4.beyond, kafka_4.valid_beyond, kafka_4.at_most),
    )


def _tightest(bounds: Sequence[BoundCount], at_most: float) -> Limit:
    for bound in bounds:
        if bound.bound_ms >= _FINEST_MS and bound.valid_beyond <= at_most * bound.valid:
            return Limit(bound.side, bound.bound_ms, bound.beyond, bound.valid_beyond, bound.at_most)
    return Limit(bounds[0].side, LONG_MAX, 0, 0)


def as_yaml(advice: Sequence[Advice], bootstrap: Sequence[str]) -> str:
    """Return a complete configuration for `sluicegate check`. Its policies observe, so they reject nothing."""
    # A topic's name contains only letters, digits and . _ -, which are literals in a glob.
    topics = [
        {"match": each.topic} | {_KEYS[limit.side]: limit.bound_ms for limit in (each.behind, each.ahead)}
        for each in advice
    ]
    config = {
        "upstream": {"bootstrap": list(bootstrap)},
        "listen": {"bootstrap": "127.0.0.1:19092"},
        "defaults": {"mode": Mode.OBSERVE.value},
        "topics": topics,
    }
    return yaml.safe_dump(config, sort_keys=False)


YAML = "sluicegate.yaml"
_TIMESTAMP_TYPE, _LOG_APPEND_TIME = "message.timestamp.type", "LogAppendTime"


class NoProfile(PipelineError):
    """Raised if the folder contains no profile of these topics. The message gives the reason."""


def read_profile(spark: SparkSession, topics: Topics, folder: str) -> Results:
    """Return the results of an earlier profile of the topics. Raises NoProfile."""
    results = Results(spark, folder)
    if not results.has(SUMMARY):
        raise NoProfile(f"{folder} has no profile: {SUMMARY} is missing")
    profiled_topics = results.read_summary().get("topics", {})
    missing = set(topics.names) - profiled_topics.keys()
    if missing:
        raise NoProfile(f"the profile in {folder} is not about {', '.join(sorted(missing))}")
    if any("damage_at_most" not in profiled_topics[name] for name in topics.names):
        raise NoProfile(f"the profile in {folder} was created by an earlier release, without ranges: create a new one")
    return results


def make_profile(spark: SparkSession, topics: Topics, out: Results, now_ms: int, after_max_ms: int) -> Results:
    """Profile the topics in a subfolder of the job's folder."""
    results = Results(spark, out.path("profile"))
    results.write_summary(profile(spark, topics, results, now_ms, after_max_ms, None))
    return results


def advice_of(topics: Topics, profile_results: Results, at_most: float) -> list[Advice]:
    """Return advice for each topic that has records."""
    found = profile_results.read_summary()["topics"]
    stamped = frozenset(name for name in topics.names if _is_stamped(topics, name, found[name]["producers"]))
    return advise(bounds_in(found, topics.names), at_most, stamped)


def bounds_in(profiled: Mapping[str, Any], names: Iterable[str]) -> list[BoundCount]:
    """Return the bounds in a profile's summary for all topics with records."""
    bounds: list[BoundCount] = []
    for name in names:
        topic = profiled[name]
        damage = topic["damage"] | {
            InvalidTimestampKind.FUTURE.value: topic["damage_at_most"][InvalidTimestampKind.FUTURE.value]
        }
        valid = topic["records"] - sum(count for kind, count in damage.items() if kind != InvalidTimestampKind.PAST)
        if topic["records"]:
            bounds += [
                BoundCount(topic=name, records=topic["records"], valid=valid, **each) for each in topic["bounds"]
            ]
    return bounds


def _is_stamped(topics: Topics, name: str, producers: list[dict[str, Any]]) -> bool:
    """Return whether the broker sets a topic's times, by its settings or, if they cannot be read, by its records."""
    try:
        return settings_of(AdminClient(topics.for_librdkafka), name).values[_TIMESTAMP_TYPE] == _LOG_APPEND_TIME
    except KafkaException:
        return any(producer["timestamp_type"] == 1 for producer in producers)


def summary_of(advice: list[Advice], topics: Topics, at_most: float) -> tuple[dict[str, Any], str]:
    """Return the summary and the configuration."""
    config = as_yaml(advice, topics.bootstrap.split(","))
    found = {
        each.topic: {
            "records": each.records,
            "before_max_ms": each.behind.bound_ms,
            "after_max_ms": each.ahead.bound_ms,
            "rejected_behind": each.behind.rejected,
            "rejected_behind_at_most": each.behind.rejected_at_most,
            "rejected_ahead": each.ahead.rejected,
            "rejected_ahead_at_most": each.ahead.rejected_at_most,
            "valid_rejected": each.behind.valid_rejected + each.ahead.valid_rejected,
            "kafka_4_rejected": each.kafka_4.rejected,
            "kafka_4_rejected_at_most": each.kafka_4.rejected_at_most,
            "broker_sets_times": each.broker_sets_times,
        }
        | topics.owner(each.topic)
        for each in advice
    }
    return {"job": "advise", "at_most": at_most, "topics": found, "yaml": config}, config


def limit_in_words(limit: Limit, broker_sets_times: bool) -> str:
    """Return the words that a table shows for a limit."""
    if broker_sets_times:
        return "none: the broker sets times"
    return "no limit" if limit.bound_ms == LONG_MAX else duration(limit.bound_ms)
