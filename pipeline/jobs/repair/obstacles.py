"""Finds, before anything is written, obstacles that would stop a repair halfway. Each obstacle includes a fix."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.repair.plan import RepairPartition, RepairPlan
from sluicegate.pipeline.jobs.repair.settings import RepairTopicSettings, Retention
from sluicegate.pipeline.report.wording import cut_rows
from sluicegate.pipeline.writing.record_writer import ROOM_BYTES
from sluicegate.protocol.integers import LONG_MAX

_ZERO = (
    "would keep a timestamp of 0, which cannot be written; if the partition has no usable time, set one with "
    "--assume-ms MS, and do not --keep zero"
)

_UNLIMITED = LONG_MAX


def remaining_zero_obstacles(listed: DataFrame) -> list[str]:
    """Return an obstacle for timestamps of 0, because clients read 0 as no timestamp and set their own."""
    stay = listed.where(f.col("after") == 0).groupBy("topic", "partition")
    rows = stay.agg(f.count("*").alias("records"), f.min("offset").alias("first")).orderBy("topic", "partition")
    return [
        f"{row.topic}-{row.partition}: {row.records:,} records, the first at offset {row.first}, {_ZERO}"
        for row in rows.collect()
    ]


def unwritable_record_sentences(listed: DataFrame) -> list[str]:
    """Return a sentence for each partition with records that client libraries cannot write because of a
    header's name.
    """
    found = listed.where("unwritable").groupBy("topic", "partition")
    rows = found.agg(f.count("*").alias("records"), f.min("offset").alias("first")).orderBy("topic", "partition")
    return [
        f"{row.topic}-{row.partition}: {row.records:,} records, the first at offset {row['first']}, have a header name "
        "that client libraries cannot write (not UTF-8, or with a zero byte)"
        for row in rows.collect()
    ]


def unreadable_batch_obstacles(plan: RepairPlan) -> list[str]:
    """Return a sentence for each range of corrupt batches, unless the repair skips them."""
    if plan.rules.skip_unreadable:
        return []
    return [
        f"{sentence}; the table unreadable contains their bytes, and --skip-unreadable skips them"
        for sentence in _unreadable(plan)
    ]


def skipped_batch_warnings(plan: RepairPlan) -> list[str]:
    """Return a warning for each range of corrupt batches that the repair skips."""
    if not plan.rules.skip_unreadable:
        return []
    return [
        f"{sentence}; these are skipped, and the table unreadable contains their bytes"
        for sentence in _unreadable(plan)
    ]


def _unreadable(plan: RepairPlan) -> list[str]:
    sentences = [f"{each.source.of}: {its}" for each in plan.partitions for its in each.contents.unreadable]
    shown, rest = cut_rows(sentences, "plan.json")
    return [*shown, *([rest] if rest else [])]


def records_rejected_by_targets(
    plan: RepairPlan, sources: Mapping[str, RepairTopicSettings], targets: Mapping[str, RepairTopicSettings]
) -> list[str]:
    """Return a sentence about records that a clean topic would reject. `targets` contains the existing clean topics."""
    found = []
    for each in plan.partitions:
        source = sources[each.source.of.topic]
        there = targets.get(each.to)
        compacted = there.is_compacted if there else plan.rules.retention is Retention.AS_SOURCE and source.is_compacted
        if compacted and each.contents.null_keys:
            why, way = (
                ("", f"set cleanup.policy=delete on {each.to}")
                if there
                else (" by --retention as-source", "omit that option")
            )
            found.append(
                f"{each.source.of}: {each.contents.null_keys:,} records without a key, which {each.to} would reject, "
                f"because it is compacted{why}: {way}"
            )
        if there and each.contents.largest + ROOM_BYTES > there.largest_message:
            found.append(
                f"{each.source.of}: a record of {each.contents.largest:,} bytes, and the limit of {each.to} is "
                f"{there.largest_message:,}: set its max.message.bytes to {each.contents.largest + ROOM_BYTES}, or use "
                "another --to"
            )
    return found


def target_time_warnings(
    plan: RepairPlan, targets: Mapping[str, RepairTopicSettings], changed: Mapping[str, tuple[int, int]]
) -> list[str]:
    """Return a sentence for each existing clean topic that would replace or reject some times.

    `changed` maps each source topic to the earliest and the latest corrected time (ms) of its records with invalid
    timestamps.
    """
    found = []
    for name, to in plan.targets.items():
        there = targets.get(to)
        if there is None:
            continue
        if there.values.get("message.timestamp.type") == "LogAppendTime":
            found.append(f"{to} has message.timestamp.type=LogAppendTime, which replaces all times: set CreateTime")
            continue
        its = [each.contents for each in plan.partitions if each.to == to and each.contents.records]
        earliest = min([each.earliest for each in its if each.earliest] + [*changed.get(name, ())][:1], default=None)
        latest = max([each.latest for each in its if each.latest] + [*changed.get(name, ())][1:], default=None)
        limits = {"before": there.limit_ms("before"), "after": there.limit_ms("after")}
        distances = {
            "before": 0 if earliest is None else plan.rules.now_ms - earliest,
            "after": 0 if latest is None else latest - plan.rules.now_ms,
        }
        found += [
            f"{to} has message.timestamp.{side}.max.ms={limits[side]}, and would reject records of {name} whose times "
            f"are {distances[side]} ms {'old' if side == 'before' else 'ahead'}: set it to {_UNLIMITED}"
            for side in limits
            if distances[side] > limits[side]
        ]
    return found


def retention_warnings(
    plan: RepairPlan, sources: Mapping[str, RepairTopicSettings], targets: Mapping[str, RepairTopicSettings]
) -> list[str]:
    """Return a warning for each clean topic whose retention would delete records, or that never deletes records."""
    found = []
    for name, to in plan.targets.items():
        outdated = sum(each.contents.outdated for each in plan.partitions if each.to == to)
        source, there = sources[name], targets.get(to)
        age = source.retention_ms if there is None else there.retention_ms
        keeps = there is None and plan.rules.retention is Retention.KEEP
        if outdated and not keeps and age is not None:
            found.append(
                f"{outdated:,} records of {name}would after their repair be older than its "
                f"retention.ms={source.retention_ms}, and "
                f"{to} deletes records older than {age} ms: omit --retention as-source"
                + (f", or set retention.ms=-1 on {to}" if there else "")
            )
        if keeps and (outdated or source.is_compacted):
            count = f" (that deletes {outdated:,} records at once)" if outdated else ""
            policy, limit = (source.values[key] for key in ("cleanup.policy", "retention.ms"))
            found.append(
                f"{to} is created without deletion and compaction, while {name} has cleanup.policy={policy} and "
                f"retention.ms={limit}: set them{count} when you are done, or use --retention as-source"
            )
    return found


def missing_offsets(plan: RepairPlan, begins: Mapping[str, int], reached: Mapping[str, int]) -> list[str]:
    """Return a sentence for offsets of the plan that were deleted before the repair wrote them.

    The keys of both mappings are partition names.
    """
    found = []
    for each in plan.partitions:
        start = max(each.source.start, reached.get(str(each.source.of), 0))
        begin = begins.get(str(each.source.of), 0)
        if start < min(begin, each.source.end):
            found.append(_gone(each, start, min(begin, each.source.end)))
    return found


def _gone(each: RepairPartition, start: int, end: int) -> str:
    return (
        f"{each.source.of}: the plan begins at offset {start}, and offsets {start} to {end - 1} were deleted since "
        "(retention?)"
    )
