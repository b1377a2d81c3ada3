"""`sluicegate-spark advise`: recommends limits from topics' profile."""

from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from sluicegate.pipeline.errors import PipelineError
from sluicegate.pipeline.jobs.advise.advice import Advice, Beyond, Limit, advise, as_yaml
from sluicegate.pipeline.jobs.profile.damage import Damage
from sluicegate.pipeline.jobs.profile.job import profile
from sluicegate.pipeline.jobs.repair.settings import settings_of
from sluicegate.pipeline.report.wording import duration
from sluicegate.pipeline.results import SUMMARY, Results
from sluicegate.pipeline.topics import Topics
from sluicegate.protocol.integers import LONG_MAX

YAML = "sluicegate.yaml"
_TIMESTAMP_TYPE, _LOG_APPEND_TIME = "message.timestamp.type", "LogAppendTime"


class NoProfile(PipelineError):
    """The folder has no profile of these topics; the text gives the reason."""


def profiled(spark: SparkSession, topics: Topics, folder: str) -> Results:
    """Return the results of an earlier profile of the topics. Raises NoProfile."""
    results = Results(spark, folder)
    if not results.has(SUMMARY):
        raise NoProfile(f"{folder} has no profile: {SUMMARY} is missing")
    missing = set(topics.names) - results.read_summary().get("topics", {}).keys()
    if missing:
        raise NoProfile(f"the profile in {folder} is not about {', '.join(sorted(missing))}")
    return results


def make_profile(spark: SparkSession, topics: Topics, out: Results, now_ms: int, after_max_ms: int) -> Results:
    """Make a profile in a subfolder of the job's folder."""
    results = Results(spark, out.path("profile"))
    results.write_summary(profile(spark, topics, results, now_ms, after_max_ms, None))
    return results


def advice_of(topics: Topics, profile_results: Results, at_most: float) -> list[Advice]:
    """Return advice for each topic that has records."""
    found = profile_results.read_summary()["topics"]
    stamped = frozenset(name for name in topics.names if _is_stamped(topics, name, found[name]["producers"]))
    bounds = []
    for name in topics.names:
        topic = found[name]
        sound = topic["records"] - sum(count for kind, count in topic["damage"].items() if kind != Damage.PAST)
        if topic["records"]:
            bounds += [Beyond(topic=name, records=topic["records"], sound=sound, **each) for each in topic["bounds"]]
    return advise(bounds, at_most, stamped)


def _is_stamped(topics: Topics, name: str, producers: list[dict[str, Any]]) -> bool:
    """Return whether the broker sets a topic's times: by its settings or, if they cannot be read, by its records."""
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
            "rejected_ahead": each.ahead.rejected,
            "sound_rejected": each.behind.sound_rejected + each.ahead.sound_rejected,
            "kafka_4_rejected": each.kafka_4.rejected,
            "broker_sets_times": each.broker_sets_times,
        }
        for each in advice
    }
    return {"job": "advise", "at_most": at_most, "topics": found, "yaml": config}, config


def limit_in_words(limit: Limit, broker_sets_times: bool) -> str:
    """Return a limit as a table shows it."""
    if broker_sets_times:
        return "none: the broker sets times"
    return "no limit" if limit.bound_ms == LONG_MAX else duration(limit.bound_ms)
