"""What would stop a repair on its way: found before anything is written, each with a way on."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.repair.plan import PartitionPlan, Plan
from sluicegate.pipeline.jobs.repair.settings import ROOM_BYTES, Retention, TopicSettings
from sluicegate.pipeline.report.wording import cut

_ZERO = (
    "would keep a timestamp of 0, which cannot be written; where nothing in the partition tells of a time, give one by "
    "--assume-ms MS, and do not --keep zero"
)


def zeros_that_stay(listed: DataFrame) -> list[str]:
    """A timestamp of 0 cannot be written: clients take it for none, and set their own."""
    stay = listed.where(f.col("after") == 0).groupBy("topic", "partition")
    rows = stay.agg(f.count("*").alias("records"), f.min("offset").alias("first")).orderBy("topic", "partition")
    return [
        f"{row.topic}-{row.partition}: {row.records:,} records, the first at offset {row.first}, {_ZERO}"
        for row in rows.collect()
    ]


def what_cannot_be_read(plan: Plan) -> list[str]:
    """Batches that are damaged, unless they are to be left out."""
    if plan.rules.skip_unreadable:
        return []
    return [
        f"{told}; the table unreadable has their bytes, and --skip-unreadable leaves them out"
        for told in _unreadable(plan)
    ]


def what_is_left_out(plan: Plan) -> list[str]:
    """A warning for each stretch of batches that are damaged and left out."""
    if not plan.rules.skip_unreadable:
        return []
    return [f"{told}; they are left out, and the table unreadable has their bytes" for told in _unreadable(plan)]


def _unreadable(plan: Plan) -> list[str]:
    told = [f"{each.source.of}: {its}" for each in plan.partitions for its in each.contents.unreadable]
    shown, rest = cut(told, "plan.json")
    return [*shown, *([rest] if rest else [])]


def what_targets_reject(
    plan: Plan, sources: Mapping[str, TopicSettings], targets: Mapping[str, TopicSettings]
) -> list[str]:
    """Records that a clean topic would not take; `targets` has those that are there already, and so are not made."""
    found = []
    for each in plan.partitions:
        source = sources[each.source.of.topic]
        there = targets.get(each.to)
        compacted = there.is_compacted if there else plan.rules.retention is Retention.AS_SOURCE and source.is_compacted
        if compacted and each.contents.null_keys:
            why, way = (
                ("", f"set cleanup.policy=delete on {each.to}")
                if there
                else (" by --retention as-source", "leave that option out")
            )
            found.append(
                f"{each.source.of}: {each.contents.null_keys:,} records without a key, which {each.to} would not take, "
                f"because it is compacted{why}: {way}"
            )
        if there and each.contents.largest + ROOM_BYTES > there.largest_message:
            found.append(
                f"{each.source.of}: a record of {each.contents.largest:,} bytes, and {each.to} takes "
                f"{there.largest_message:,}: set its max.message.bytes to {each.contents.largest + ROOM_BYTES}, or let "
                "another --to be made"
            )
    return found


def what_retention_takes(
    plan: Plan, sources: Mapping[str, TopicSettings], targets: Mapping[str, TopicSettings]
) -> list[str]:
    """A warning for each clean topic: what it would delete, or what one has to know of one that deletes nothing."""
    found = []
    for name, to in plan.targets.items():
        outdated = sum(each.contents.outdated for each in plan.partitions if each.to == to)
        source, there = sources[name], targets.get(to)
        age = source.retention_ms if there is None else there.retention_ms
        keeps = there is None and plan.rules.retention is Retention.KEEP
        if outdated and not keeps and age is not None:
            found.append(
                f"{outdated:,} records of {name}, repaired, are older than its retention.ms={source.retention_ms}, and "
                f"{to} deletes what is older than {age} ms: leave --retention as-source out"
                + (f", or set retention.ms=-1 on {to}" if there else "")
            )
        if keeps and (outdated or source.is_compacted):
            count = f" (that takes {outdated:,} records at once)" if outdated else ""
            policy, limit = (source.values[key] for key in ("cleanup.policy", "retention.ms"))
            found.append(
                f"{to} is made to delete and compact nothing, where {name} has cleanup.policy={policy} and "
                f"retention.ms={limit}: set them{count} when you are done, or give --retention as-source"
            )
    return found


def what_is_gone(plan: Plan, begins: Mapping[str, int], reached: Mapping[str, int]) -> list[str]:
    """Offsets of the plan that are not there any more and not written yet; both by partition, as `str` has it."""
    found = []
    for each in plan.partitions:
        start = max(each.source.start, reached.get(str(each.source.of), 0))
        begin = begins.get(str(each.source.of), 0)
        if start < min(begin, each.source.end):
            found.append(_gone(each, start, min(begin, each.source.end)))
    return found


def _gone(each: PartitionPlan, start: int, end: int) -> str:
    return (
        f"{each.source.of}: the plan begins at offset {start}, and offsets {start} to {end - 1} were deleted since "
        "(retention?)"
    )
