"""Examines the settings and ACLs of the shared state's topics."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sluicegate.proxy.doctor.check_result import CheckResult, Level, names_shortened
from sluicegate.proxy.state.fleet_view import FORGOTTEN_MS
from sluicegate.proxy.state.topic_plan import TopicPlan

_CLEANUP, _IN_SYNC, _RETENTION, _TIMES = (
    "cleanup.policy",
    "min.insync.replicas",
    "retention.ms",
    "message.timestamp.type",
)
_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
_SHOWN_DAYS = 7  # the default of `sluicegate history --days`
Problem = tuple[Level, str, str]
"""A problem's level, finding and remedy."""


@dataclass(frozen=True, slots=True)
class FoundTopic:
    """A topic of the shared state in the cluster.

    `writers` contains the principals that ACLs allow to change it. If `writers` is None, they are unknown, and
    `why_unknown` gives the reason.
    """

    partitions: int
    replicas: int
    settings: dict[str, str]
    writers: frozenset[str] | None
    why_unknown: str = ""


def check_topic(plan: TopicPlan, topic: FoundTopic) -> Iterator[CheckResult]:
    """Yield the topic's problems, or a single result if there are none, and then the principals
    that may write to it.
    """
    problems, forged = _CHECKS[plan.key]
    wrong = [
        CheckResult(plan.key, level, f"{plan.name} has {found}", advice) for level, found, advice in problems(topic)
    ]
    found = f"{plan.name} has suitable partitions, replicas and settings"
    yield from wrong or [CheckResult(plan.key, Level.OK, found)]
    yield _writers(plan, topic, forged)


def _of_state(topic: FoundTopic) -> Iterator[Problem]:
    if topic.partitions != 1:
        advice = "create the topic again with one partition: Kafka cannot reduce the number"
        yield Level.FAILURE, f"{topic.partitions} partitions, so its changes have no order", advice
    cleanup = topic.settings.get(_CLEANUP, "compact")
    if cleanup != "compact":
        found = f"{_CLEANUP}={cleanup}: suspensions can be deleted while they apply"
        yield Level.FAILURE, found, f"set {_CLEANUP}=compact"
    yield from _copies(topic, "a change")


def _of_history(topic: FoundTopic) -> Iterator[Problem]:
    cleanup = topic.settings.get(_CLEANUP, "delete")
    if cleanup != "delete":
        found = f"{_CLEANUP}={cleanup}: compaction keeps only one of the entries of the proxies that applied a change"
        yield Level.WARNING, found, f"set {_CLEANUP}=delete"
    retention_ms = int(topic.settings.get(_RETENTION, "-1"))
    if 0 <= retention_ms < _SHOWN_DAYS * _DAY_MS:
        found = f"{_RETENTION}={retention_ms}: changes are kept for less than the {_SHOWN_DAYS} days that are shown"
        yield Level.WARNING, found, f"set {_RETENTION} to the days that audits need"
    yield from _copies(topic, "an entry")


def _of_presence(topic: FoundTopic) -> Iterator[Problem]:
    if topic.partitions != 1:
        found = f"{topic.partitions} partitions: the fleet view reads the newest 12,000 records of each"
        yield Level.WARNING, found, "create the topic again with one partition"
    cleanup = topic.settings.get(_CLEANUP, "delete")
    retention_ms = int(topic.settings.get(_RETENTION, "3600000"))
    if "delete" not in cleanup or not 0 <= retention_ms <= _DAY_MS:
        found = f"{_CLEANUP}={cleanup} and {_RETENTION}={retention_ms}: each proxy adds 17,280 records a day"
        yield Level.WARNING, found, f"set {_CLEANUP}=delete and {_RETENTION}=3600000"
    elif retention_ms < FORGOTTEN_MS:
        found = f"{_RETENTION}={retention_ms}: stale proxies vanish before {FORGOTTEN_MS // _MINUTE_MS} minutes"
        yield Level.WARNING, found, f"set {_RETENTION}=3600000"
    times = topic.settings.get(_TIMES, "LogAppendTime")
    if times != "LogAppendTime":
        found = f"{_TIMES}={times}: clocks cannot be compared, so a proxy is stale or not by its own clock"
        yield Level.WARNING, found, f"set {_TIMES}=LogAppendTime"
    if topic.replicas < 2:
        found = f"{topic.replicas} replicas: while its broker is down, no proxy shows the fleet"
        yield Level.WARNING, found, "use 3 replicas"


def _copies(topic: FoundTopic, what: str) -> Iterator[Problem]:
    in_sync = int(topic.settings.get(_IN_SYNC, "2"))
    found = f"{topic.replicas} replicas and {_IN_SYNC}={in_sync}"
    advice = f"use 3 replicas and {_IN_SYNC}=2"
    if in_sync > topic.replicas:
        yield Level.FAILURE, f"{found}: {what} cannot be written", advice
    elif topic.replicas < 2 or in_sync < 2:
        yield Level.WARNING, f"{found}: {what} can be lost with one broker", advice


_Check = tuple[Callable[[FoundTopic], Iterator[Problem]], str]
_CHECKS: dict[str, _Check] = {
    "state.topic": (_of_state, "switch enforcement off"),
    "state.history_topic": (_of_history, "forge what was changed"),
    "state.presence_topic": (_of_presence, "forge the view of the fleet"),
}
"""For each configuration key, the function that checks its topic, and the harm that other writers could do."""


def _writers(plan: TopicPlan, topic: FoundTopic, forged: str) -> CheckResult:
    about, name = f"{plan.key}: who may write", plan.name
    if topic.writers is None:
        advice = "allow the proxy's login DESCRIBE on the cluster"
        return CheckResult(about, Level.NOT_CHECKED, topic.why_unknown, advice)
    if len(topic.writers) > 1:
        found = f"ACLs allow {names_shortened(sorted(topic.writers))} to change {name}, and so to {forged}"
        return CheckResult(about, Level.FAILURE, found, "grant these permissions only to the proxies' login")
    if not topic.writers:  # librdkafka also returns no ACLs if the brokers have no authorizer
        found = (
            f"no ACL covers changes of {name}: without an authorizer, every client may change it; with one, only super "
            f"users may"
        )
        return CheckResult(about, Level.WARNING, found, "add an ACL that allows only the proxies' login to do so")
    return CheckResult(about, Level.OK, f"ACLs allow only {next(iter(topic.writers))} to change {name}")
