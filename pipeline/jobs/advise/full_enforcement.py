"""Estimates, from a topic's profile, how many records a configuration would have rejected if it were enforced in full.

A topic is partly enforced if its policy only observes, or is enforced only for some clients (`enforce`). A profile
counts the records beyond certain bounds, so the count for any other bound is between the counts of the neighbouring
bounds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sluicegate.config.model import Config
from sluicegate.pipeline.jobs.advise.job import BEHIND, BoundCount, bounds_in
from sluicegate.pipeline.jobs.audit.job import cluster_settings
from sluicegate.pipeline.jobs.audit.policies import Policies, policies_of
from sluicegate.pipeline.report.page import ReportSection, Table
from sluicegate.pipeline.report.wording import cut_rows, duration, printable
from sluicegate.pipeline.runs.results import Results
from sluicegate.pipeline.source.topics import Topics
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.policy import TimestampType, TopicPolicy
from sluicegate.validation.rules.rule import Mode

_HEADS = ("topic", "enforced for", "before.max", "after.max", "records", "would reject at least", "at most")


@dataclass(frozen=True, slots=True)
class FullEnforcement:
    """The effect of full enforcement on one topic.

    `enforced_for` describes the clients for which the policy is enforced now. Between `rejected_at_least` and
    `rejected_at_most` records are beyond the policy's bounds (ms).
    """

    topic: str
    enforced_for: str
    before_max_ms: int
    after_max_ms: int
    records: int
    rejected_at_least: int
    rejected_at_most: int

    def as_json(self) -> dict[str, Any]:
        """Return the topic's figures for summary.json."""
        return {key: value for key, value in asdict(self).items() if key not in ("topic", "records")}


def effect_of(config: Config, topics: Topics, profile_results: Results) -> list[FullEnforcement]:
    """Return the effect on each topic of a profile, given the file's policies and the cluster's settings."""
    settings = cluster_settings(topics)[0] if config.upstream.topic_settings else {}
    bounds = bounds_in(profile_results.read_summary()["topics"], topics.names)
    return list(full_enforcement(policies_of(config, settings), bounds))


def full_enforcement(policies: Policies, bounds: Sequence[BoundCount]) -> Iterator[FullEnforcement]:
    """Yield the effect on each partly enforced topic. `bounds` are the bounds of a profile. Raises RuleUnusable."""
    rulebook = policies.rulebook()
    for topic in dict.fromkeys(each.topic for each in bounds):
        policy = rulebook.policy_of(topic)
        if policy.checked and (policy.enforced is not None or policy.mode is Mode.OBSERVE):
            yield _of_topic(topic, policy, [each for each in bounds if each.topic == topic])


def _of_topic(topic: str, policy: TopicPolicy, bounds: Sequence[BoundCount]) -> FullEnforcement:
    is_observed = policy.mode is Mode.OBSERVE
    records = bounds[0].records
    least = most = 0
    if policy.timestamp_type is not TimestampType.LOG_APPEND_TIME:
        for side in dict.fromkeys(each.side for each in bounds):
            bound = policy.before_max_ms if side == BEHIND else policy.after_max_ms
            low, high = _between(bound, [each for each in bounds if each.side == side], records)
            least, most = least + low, most + high
    return FullEnforcement(
        topic,
        "no client (mode: observe)" if is_observed else str(policy.enforced),
        policy.before_max_ms,
        policy.after_max_ms,
        records,
        least,
        min(most, records),
    )


def _between(bound_ms: int, bounds: Iterable[BoundCount], records: int) -> tuple[int, int]:
    """Return the minimum and the maximum number of records that may be beyond a bound."""
    if bound_ms == LONG_MAX:
        return 0, 0
    steps = sorted(bounds, key=lambda each: each.bound_ms)
    least = next((each.beyond for each in steps if each.bound_ms >= bound_ms), 0)
    most = next((each.at_most for each in reversed(steps) if each.bound_ms <= bound_ms), records)
    return least, most


def enforcement_sentence(found: Sequence[FullEnforcement]) -> str:
    """Return a sentence about the effect of full enforcement; an empty string if all topics are enforced."""
    if not found:
        return ""
    least, most = (sum(getattr(each, name) for each in found) for name in ("rejected_at_least", "rejected_at_most"))
    records = sum(each.records for each in found)
    count = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return (
        f"Enforced for all clients, the configured bounds for timestamps would have rejected {count} of {records:,} "
        f"records on {', '.join(printable(each.topic) for each in found[:5])}{' and others' if found[5:] else ''}; "
        "sluicegate-spark audit with the same file counts all other checks too."
    )


def section_of(found: Sequence[FullEnforcement]) -> ReportSection:
    """Return the report's section about full enforcement."""
    worst = sorted(found, key=lambda each: (-each.rejected_at_most, each.topic))
    shown, rest = cut_rows(worst, "summary.json")
    rows = [
        (
            printable(each.topic),
            printable(each.enforced_for),
            *("none" if bound == LONG_MAX else duration(bound) for bound in (each.before_max_ms, each.after_max_ms)),
            *(each.records, each.rejected_at_least, each.rejected_at_most),
        )
        for each in shown
    ]
    caption = f"Topics that the configuration enforces for some clients, or only observes. {rest}".strip()
    return ReportSection("Full enforcement", enforcement_sentence(found), tables=[Table(caption, _HEADS, rows)])
