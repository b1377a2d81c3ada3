"""`sluicegate-spark repair`: a plan, what it would change, and on --apply the clean topic."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from pipeline.repair.correction import Rules
from pipeline.repair.listing import before_and_after, damaged
from pipeline.repair.plan import PartitionPlan, Plan, make_plan, plan_from, survey
from pipeline.repair.target import client_of, prepare
from pipeline.repair.writing import CannotWrite, Written, write_partition
from pipeline.results import Results
from pipeline.source.tasks import over
from pipeline.topics import Topics

PLAN = "plan.json"
_TOPIC = "{topic}"
_WRITTEN = "topic string, partition bigint, records bigint, corrected bigint"


class RepairBegun(Exception):
    """A repair was begun with another plan, or is to be finished first; the text says what to do."""


def targets_of(topics: Topics, to: str) -> dict[str, str]:
    """Source topic to clean topic; `to` names it, {topic} in it stands for the source's name. Raises CannotWrite."""
    if len(topics.names) > 1 and _TOPIC not in to:
        raise CannotWrite(f"several topics cannot all be written to {to}; have {_TOPIC} in --to")
    found = {name: to.replace(_TOPIC, name) for name in topics.names}
    for source, target in found.items():
        if target in topics.names:
            raise CannotWrite(f"{source} cannot be repaired into {target}, which is read itself")
    return found


def planned(spark: SparkSession, topics: Topics, results: Results, targets: dict[str, str], rules: Rules) -> Plan:
    """A new plan, written down. Raises RepairBegun."""
    if results.has(PLAN) and plan_from(results.read_text(PLAN)).begun:
        raise RepairBegun(
            f"a repair was begun in {results.path('')} already: go on with it by --apply, or use another --out"
        )
    ranges = topics.ranges()
    plan = make_plan(ranges, targets, survey(spark, topics, ranges, rules.now_ms), rules)
    results.write_text(PLAN, plan.as_json())
    return plan


def kept_plan(results: Results, targets: dict[str, str], rules: Rules) -> Plan | None:
    """The plan that is written down; None when there is none by these rules, whose moment does not matter.

    Raises RepairBegun when it is about other topics, or has been begun by other rules.
    """
    if not results.has(PLAN):
        return None
    plan = plan_from(results.read_text(PLAN))
    if plan.targets != targets:
        held = ", ".join(f"{source} to {to}" for source, to in plan.targets.items())
        raise RepairBegun(f"the plan in {results.path(PLAN)} is for {held}; use another --out")
    if replace(rules, now_ms=plan.rules.now_ms) == plan.rules:
        return plan
    if plan.begun:
        raise RepairBegun(
            f"the repair in {results.path('')} was begun with other --after-max-ms, --keep or --assume-ms: go on with "
            "those, or use another --out and --to"
        )
    return None


def listed(spark: SparkSession, topics: Topics, results: Results, plan: Plan) -> list[dict[str, Any]]:
    """Write the tables `repairs` and `undiagnosed`; returns the rows of the before-and-after table."""
    found = results.write_table("repairs", damaged(spark, topics, plan))
    results.write_table("undiagnosed", found.where(~f.col("solved")))
    return before_and_after(found)


def apply(spark: SparkSession, topics: Topics, results: Results, plan: Plan) -> list[Written]:
    """Write the clean topics; goes on where a run before was killed. Raises CannotWrite."""
    groups = prepare(plan, topics)
    results.write_text(PLAN, replace(plan, begun=True).as_json())
    options, client = topics.options, client_of(topics)

    def write(each: PartitionPlan) -> pa.Table:
        return pa.Table.from_pylist([asdict(write_partition(each, groups[each.to], options, client))])

    rows = over(spark, plan.partitions, write, _WRITTEN).collect()
    return [Written(**row.asDict()) for row in rows]


def summary_of(plan: Plan, changes: list[dict[str, Any]], written: list[Written] | None) -> dict[str, Any]:
    """`written` is None for a dry run."""
    topics: Mapping[str, dict[str, Any]] = {
        source: {"to": to, "offsets": 0, "repaired": {}, "undiagnosed": {}} for source, to in plan.targets.items()
    }
    for each in plan.partitions:
        topics[each.source.of.topic]["offsets"] += each.source.end - each.source.start
    for row in changes:
        counts = topics[row["topic"]]["repaired" if row["solved"] else "undiagnosed"]
        counts[row["damage"]] = counts.get(row["damage"], 0) + row["records"]
    found: dict[str, Any] = {"job": "repair", "applied": written is not None, "topics": topics, "changes": changes}
    if written is not None:
        found["written_by_this_run"] = sum(each.records for each in written)
    return found
