"""Writes and reads a repair plan. The plan is stored first, so that a resumed repair makes the same decisions."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

from sluicegate.pipeline.jobs.profile.append_times import AppendTimes, append_times_from
from sluicegate.pipeline.jobs.profile.clock import Clock
from sluicegate.pipeline.jobs.repair.correction import Rules, clock_as_plan, clock_from
from sluicegate.pipeline.jobs.repair.settings import Retention
from sluicegate.pipeline.jobs.repair.survey import PartitionContents, PartitionSurvey
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.source.decoding import Unreadable


class PlanTooOld(PipelineError):
    """Raised if the plan lacks fields that this release needs. The message gives a fix."""


@dataclass(frozen=True, slots=True)
class RepairPartition:
    """The plan for one range: copy its records to the partition with the same number in the topic `to`.

    `contents` describes the range's records. `codec` compresses the copies.
    """

    source: OffsetRange
    to: str
    contents: PartitionContents
    codec: str
    clock: Clock | None
    times: AppendTimes
    rules: Rules


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The plan of a repair. `targets` maps each source topic to its clean topic.

    `begun` is whether a run may have written something according to this plan.
    """

    targets: dict[str, str]
    partitions: tuple[RepairPartition, ...]
    rules: Rules
    begun: bool = False

    @property
    def plan_id(self) -> str:
        """Return an id that is the same for equal plans."""
        return sha256(replace(self, begun=False).as_json().encode()).hexdigest()[:16]

    @property
    def skips_unreadable(self) -> bool:
        """Return whether unreadable batches are skipped."""
        return self.rules.skip_unreadable and any(each.contents.unreadable for each in self.partitions)

    def as_json(self) -> str:
        """Return the plan as JSON, which `plan_from` reads."""
        return json.dumps(
            {
                "targets": self.targets,
                "now_ms": self.rules.now_ms,
                "after_max_ms": self.rules.after_max_ms,
                "keep": sorted(self.rules.keep),
                "assume_ms": self.rules.assume_ms,
                "rewrite": sorted(self.rules.rewrite),
                "epoch_ms": self.rules.epoch_ms,
                "retention": self.rules.retention,
                "begun": self.begun,
                **({"skip_unreadable": True} if self.rules.skip_unreadable else {}),
                **({"skip_unwritable": True} if self.rules.skip_unwritable else {}),
                "partitions": [
                    {
                        "topic": each.source.of.topic,
                        "partition": each.source.of.partition,
                        "start": each.source.start,
                        "end": each.source.end,
                        "contents": _as_plan(each.contents),
                        "codec": each.codec,
                        "clock": clock_as_plan(each.clock),
                        "append_times": each.times.as_json(),
                    }
                    for each in self.partitions
                ],
            }
        )


def plan_from(text: str) -> RepairPlan:
    """Return the plan from the JSON of `RepairPlan.as_json`. Raises PlanTooOld."""
    value = json.loads(text)
    if any("append_times" not in each for each in value["partitions"]):
        raise PlanTooOld(
            "the plan was made by an earlier release, which estimated append times differently: make a new plan with "
            "another --out and --to, or finish this one with that release"
        )
    rules = Rules(
        value["now_ms"],
        value["after_max_ms"],
        frozenset(value["keep"]),
        value["assume_ms"],
        frozenset(value["rewrite"]),
        value["epoch_ms"],
        Retention(value["retention"]),
        value.get("skip_unreadable", False),
        value.get("skip_unwritable", False),
    )
    partitions = tuple(
        RepairPartition(
            OffsetRange(TopicPartition(each["topic"], each["partition"]), each["start"], each["end"]),
            value["targets"][each["topic"]],
            _contents_from(each["contents"]),
            each["codec"],
            clock_from(each["clock"]),
            append_times_from(each["append_times"]),
            rules,
        )
        for each in value["partitions"]
    )
    return RepairPlan(value["targets"], partitions, rules, value["begun"])


def make_plan(
    ranges: Iterable[OffsetRange],
    targets: dict[str, str],
    surveys: dict[TopicPartition, PartitionSurvey],
    rules: Rules,
) -> RepairPlan:
    """Make a plan for the ranges from their surveys."""
    assumed = None if rules.assume_ms is None else Clock.fixed_at(rules.assume_ms)
    partitions = []
    for each in ranges:
        found = surveys.get(
            each.of,
            PartitionSurvey(each.start, PartitionContents(), "none", None, AppendTimes.between(0, rules.now_ms)),
        )
        clock = found.clock if found.clock is not None else assumed
        source, to = replace(each, start=found.start), targets[each.of.topic]
        partitions.append(RepairPartition(source, to, found.contents, found.codec, clock, found.times, rules))
    return RepairPlan(targets, tuple(partitions), rules)


def _as_plan(contents: PartitionContents) -> dict[str, Any]:
    """Return the contents without defaults, so that a plan that an earlier release began keeps its id."""
    return {name: value for name, value in asdict(contents).items() if name != "unreadable" or value}


def _contents_from(value: dict[str, Any]) -> PartitionContents:
    unreadable = tuple(Unreadable(**each) for each in value.get("unreadable", ()))
    return PartitionContents(**{**value, "unreadable": unreadable})
