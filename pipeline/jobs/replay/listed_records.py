"""Reads records that an audit listed as bad, which are stored in their destination topics."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark import Broadcast
from pyspark.sql import functions as f

from sluicegate.pipeline.jobs.audit.findings import RowKind
from sluicegate.pipeline.jobs.repair.correction import RepairHeader
from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, Header, ReplayRecord, decode_headers, raw_headers
from sluicegate.pipeline.jobs.replay.decisions import RemainingLetter, RemainingReason
from sluicegate.pipeline.jobs.replay.letters import LetterBatch
from sluicegate.pipeline.jobs.replay.progress import LISTED_GROUP
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.runs.results import SUMMARY, Results
from sluicegate.pipeline.source.options import source_options
from sluicegate.pipeline.source.reading import read_rows
from sluicegate.validation.dispositions.quarantine import DeadLetterHeader

_COLUMNS = "key,value,offset,timestamp,timestamp_type,headers_binary"
_AT_ONCE = 5_000
_NEAR_OFFSETS = 10_000
"""Records closer than this are read together, because another fetch costs as much as reading the gap."""
_APPENDED = 1  # the value of timestamp_type for LogAppendTime


class NoFindings(PipelineError):
    """Raised if the folder contains no audit that a replay can use. The message gives a fix."""


class ListedRecords:
    """The records in an audit's table `samples`. For `group` see `LetterSource`."""

    group = LISTED_GROUP

    def __init__(self, options: Mapping[str, str], listed: Broadcast[dict[TopicPartition, pa.Table]]) -> None:
        """Take the raw source's options and, as `listed`, the result of `listed_records_in`."""
        self._options = {**options, "columns": _COLUMNS, "failOnDataLoss": "false"}
        self._listed = listed

    def within(self, wanted: OffsetRange) -> Iterator[LetterBatch]:
        """Yield a range's listed records in order. Raises the errors of reading."""
        listed = self._listed.value[wanted.of]
        first, end = np.searchsorted(listed["offset"].to_numpy(), [wanted.start, wanted.end])
        rows = listed.slice(first, end - first)
        for start, count in _runs(rows["offset"].to_numpy(), rows["timestamp"].is_null().to_numpy()):
            yield self._some(wanted.of, rows.slice(start, count).to_pylist())

    def _some(self, of: TopicPartition, rows: list[dict[str, Any]]) -> LetterBatch:
        if rows[0]["timestamp"] is None:
            return LetterBatch(
                [(row["offset"], RemainingLetter(RemainingReason.WHOLE_BATCH, row["diagnosis"])) for row in rows], 0
            )
        stored, size = self._stored(of, [row["offset"] for row in rows])
        return LetterBatch([(row["offset"], _letter(of, row, stored.get(row["offset"]))) for row in rows], size)

    def _stored(self, of: TopicPartition, offsets: Sequence[int]) -> tuple[dict[int, dict[str, Any]], int]:
        """Return the stored rows at the offsets, and their total size in bytes."""
        reading = source_options({**self._options, "subscribe": of.topic})
        found, size = dict[int, dict[str, Any]](), 0
        for batch in read_rows(reading, OffsetRange(of, offsets[0], offsets[-1] + 1)):
            rows = batch.filter(pa.array(np.isin(batch["offset"].to_numpy(), offsets)))
            size += rows.nbytes
            found |= {row["offset"]: row for row in rows.to_pylist()}
        return found, size


def listed_records_in(results: Results, topics: Sequence[str]) -> dict[TopicPartition, pa.Table]:
    """Return the records that the folder's audit lists for the topics, by partition and in offset order.

    Columns: `offset`, `timestamp` (ms; null if a whole batch is bad), `reason`, `rules` (names separated by commas, or
    null) and `diagnosis`. Raises NoFindings.
    """
    _check(results, topics)
    rows = results.read_table(RowKind.SAMPLES.value).where(f.col("topic").isin(*topics))
    once = rows.groupBy("topic", "partition", "offset").agg(
        f.max("timestamp").alias("timestamp"),
        f.min("reason").alias("reason"),
        f.nullif(f.array_join(f.array_sort(f.collect_set("rule")), ", "), f.lit("")).alias("rules"),
        f.min(f.when(f.col("timestamp").isNull(), f.col("diagnosis"))).alias("diagnosis"),
    )
    found: dict[TopicPartition, pa.Table] = {}
    table = once.orderBy("topic", "partition", "offset").toArrow()
    columns = ["reason", "rules", "diagnosis"]
    for name in columns:
        table = table.set_column(table.schema.get_field_index(name), name, table[name].dictionary_encode())
    for topic in topics:
        of_topic = table.filter(pc.equal(table["topic"], topic))
        for partition in pc.unique(of_topic["partition"]).to_pylist():
            its = of_topic.filter(pc.equal(of_topic["partition"], partition))
            found[TopicPartition(topic, partition)] = its.select(["offset", "timestamp", *columns]).combine_chunks()
    return found


def ranges_of(listed: Mapping[TopicPartition, pa.Table], there: Sequence[OffsetRange]) -> list[OffsetRange]:
    """Return, for each partition, the range from the first to the last listed record.

    Raises NoFindings if a partition ends before its last listed record.
    """
    ends = {each.of: each.end for each in there}
    found = []
    for of, rows in listed.items():
        first, last = rows["offset"][0].as_py(), rows["offset"][-1].as_py()
        if of in ends and last >= ends[of]:
            raise NoFindings(
                f"{of}: offset {last} was validated, and records end before offset {ends[of]}: if the topic was "
                "recreated, audit it again"
            )
        found.append(OffsetRange(of, first, last + 1))
    return found


def skipped_record_sentences(listed: Mapping[TopicPartition, pa.Table], ranges: Sequence[OffsetRange]) -> list[str]:
    """Return a sentence for each partition in which an earlier replay handled listed records before these ranges."""
    counts = {each.of: int((listed[each.of]["offset"].to_numpy() < each.start).sum()) for each in ranges}
    return [
        f"{each.of}: {counts[each.of]:,} listed records before offset {each.start} were handled by an earlier "
        "replay, and are not replayed again"
        for each in ranges
        if counts[each.of]
    ]


def _check(results: Results, topics: Sequence[str]) -> None:
    where = results.path(SUMMARY)
    if not results.has(SUMMARY):
        raise NoFindings(f"{where} does not exist: use the folder (--out) of a finished audit")
    summary = results.read_summary()
    if summary.get("job") not in ("audit", "judge"):
        raise NoFindings(f"{where} contains the results of a {summary.get('job')}: use the folder (--out) of an audit")
    if not summary.get("lists_all"):
        raise NoFindings(f"{where}: this audit kept only some records of each kind: run it again with --samples all")
    missing = [topic for topic in topics if topic not in summary["topics"]]
    if missing:
        raise NoFindings(f"{where}: the audit does not cover {', '.join(missing)}, only {', '.join(summary['topics'])}")


def _runs(offsets: NDArray[np.int64], whole: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """Yield the start and the length of each run of nearby records. Records of bad batches are separate runs."""
    far = np.diff(offsets) > _NEAR_OFFSETS
    cuts = np.flatnonzero(far | (whole[1:] != whole[:-1])) + 1
    starts = np.concatenate(([0], cuts)) if len(offsets) else cuts
    for first, end in zip(starts.tolist(), [*cuts.tolist(), len(offsets)], strict=False):
        for start in range(first, end, _AT_ONCE):
            yield start, min(_AT_ONCE, end - start)


def _letter(
    of: TopicPartition, row: Mapping[str, Any], stored: Mapping[str, Any] | None
) -> DeadLetter | RemainingLetter:
    offset = row["offset"]
    if stored is None:
        return RemainingLetter(
            RemainingReason.NOT_STORED, f"the record at offset {offset} was deleted (retention or compaction?)"
        )
    if stored["timestamp_type"] != _APPENDED and stored["timestamp"] != row["timestamp"]:
        message = (
            f"its timestamp is {stored['timestamp']}, and {row['timestamp']} was validated: if the topic was recreated,"
        )
        return RemainingLetter(RemainingReason.ANOTHER, f"{message} audit it again")
    rules = row["rules"]
    own = decode_headers(raw_headers(stored["headers_binary"]))
    record = ReplayRecord(stored["timestamp"], stored["key"], stored["value"], own)
    proxy_headers: tuple[Header, ...] = (
        (RepairHeader.ORIGIN.value, f"{of.topic}/{of.partition}/{offset}".encode()),
        (DeadLetterHeader.REASON.value, row["reason"].encode()),
        (DeadLetterHeader.TIMESTAMP.value, str(stored["timestamp"]).encode()),
        *([(DeadLetterHeader.RULE.value, rules.encode())] if rules else []),
    )
    its_rules = tuple(rules.split(", ")) if rules else ()
    return DeadLetter(of, offset, of.topic, of.partition, record, row["reason"], its_rules, proxy_headers)
