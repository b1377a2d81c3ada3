"""Plans and applies `sluicegate dead-letters redrive`."""

import getpass
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import typer

from sluicegate.dead_letters.at_least_once_writer import AtLeastOnceWriter
from sluicegate.dead_letters.cluster import Cluster, Range, ranges_of
from sluicegate.dead_letters.contents import shown_contents
from sluicegate.dead_letters.mark_topic import create_marks, read_marks, topic_id_of
from sluicegate.dead_letters.plan import Planner, PlanSummary
from sluicegate.dead_letters.redriving import LetterWriter, Origin, Pace, Redrive, Redriven, decisions
from sluicegate.dead_letters.repairs import LetterRepair
from sluicegate.dead_letters.selection import Selection
from sluicegate.dead_letters.transactional_writer import Fenced, TransactionalWriter
from sluicegate.proxy.cli.console import end, print_line, print_lines
from sluicegate.proxy.cli.dead_letter_access import USAGE, Desk, FixTime, RecordTime, TargetPartition
from sluicegate.proxy.reporting.events.violation_event import shown_beginning
from sluicegate.proxy.server.clock import now_ms
from sluicegate.validation.policy import TimeFix

_RANGE = re.compile(r"(\d{1,9}):(\d{1,18})-(\d{1,18})")


@dataclass(frozen=True, slots=True)
class Asked:
    """The options that the plan depends on."""

    topic: str
    group: str | None
    offsets: str | None
    since: str | None
    until: str | None
    key: str | None
    header: str | None
    time: RecordTime
    fix: FixTime | None
    partition: TargetPartition
    max_attempts: int
    marks: str
    repairs: Sequence[LetterRepair]
    is_at_least_once: bool


def redrive_topic(
    desk: Desk, target: Desk, asked: Asked, apply: str | None, rate: float | None, stop_after: int | None, as_json: bool
) -> int:
    """Print the plan, or apply it if its digest is `apply`. Return the exit status. Raises ClusterUnavailable.

    `desk` has the dead letters and the marks, and `target` the original topics.
    """
    cluster, topic = desk.cluster, asked.topic
    elsewhere = _other_cluster(desk, target, asked)
    topic_id = topic_id_of(cluster, topic)
    writer = None
    try:
        if apply is not None:
            create_marks(cluster, asked.marks)
            writer = _writer(desk, target, asked)  # before the marks are read, so that none follows
        selection = _selection(cluster, asked)
        planner = _planner(desk, target, asked, topic_id)
        summary = PlanSummary(_terms(asked, topic_id, elsewhere, selection))
        for decision in decisions(cluster, topic, selection, planner, apply or ""):
            summary.add(decision)
        if writer is None or apply is None:
            _print_plan(target, asked, selection, summary, as_json)
            return 0
        if summary.digest != apply:
            end([f"sluicegate dead-letters: the plan has changed (its digest is {summary.digest}); print it again"])
        redriving = Redrive(
            writer, planner, Origin(topic, topic_id, apply, getpass.getuser()), Pace(rate, stop_after), now_ms
        )
        result = redriving.run(decisions(cluster, topic, selection, planner, apply))
    except Fenced:
        end([f"sluicegate dead-letters: another run redrives {topic} and has taken over; wait until it ends"], USAGE)
    _print_result(topic, result, redriving.is_stopped, as_json)
    return 1 if result.given_up else 0


def _other_cluster(desk: Desk, target: Desk, asked: Asked) -> str | None:
    """Return the id of the cluster with the original topics, or None if it is that of the dead letters.

    One transaction cannot include two clusters, so another cluster without --at-least-once ends the command.
    """
    if target is desk:
        return None
    source_id, target_id = desk.cluster.cluster_id(), target.cluster.cluster_id()
    if source_id == target_id:
        return None
    if not asked.is_at_least_once:
        end(
            [
                f"sluicegate dead-letters: {asked.topic} is in the cluster {source_id}, and the original topics are in "
                f"{target_id}. One transaction cannot include both clusters; with --at-least-once, records may be "
                "written twice after a crash"
            ],
            USAGE,
        )
    return target_id


def _writer(desk: Desk, target: Desk, asked: Asked) -> LetterWriter:
    if asked.is_at_least_once:
        return AtLeastOnceWriter(target.cluster, desk.cluster, asked.marks)
    return TransactionalWriter(target.cluster, asked.topic, asked.marks)


def _planner(desk: Desk, target: Desk, asked: Asked, topic_id: str) -> Planner:
    return Planner(
        target.validator(now_ms(), asked.time),
        read_marks(desk.cluster, asked.marks, asked.topic, topic_id),
        target.cluster.topics(),
        None if asked.fix is None else TimeFix(asked.fix.value),
        asked.max_attempts,
        asked.partition is TargetPartition.SAME,
        asked.repairs,
    )


def _terms(asked: Asked, topic_id: str, elsewhere: str | None, selection: Selection) -> str:
    """Return what a plan depends on besides the letters and the policies."""
    fix = None if asked.fix is None else asked.fix.value
    repairs = [repair.identity for repair in asked.repairs]
    options = [asked.time.value, fix, asked.partition.value, repairs]
    return json.dumps([asked.topic, topic_id, elsewhere, selection.text(), *options])


def _selection(cluster: Cluster, asked: Asked) -> Selection:
    consumer = cluster.consumer()
    try:
        present = ranges_of(consumer, asked.topic, cluster.topics()[asked.topic])
    finally:
        consumer.close()
    ranges = present if asked.offsets is None else list(_given_ranges(asked.offsets, present))
    header = None
    if asked.header is not None:
        name, separator, value = asked.header.partition("=")
        if not separator:
            raise typer.BadParameter("--header: write NAME=VALUE")
        header = name.encode(), value.encode()
    return Selection(
        tuple(each for each in ranges if each.start < each.end),
        asked.group,
        _time_ms("--since", asked.since),
        _time_ms("--until", asked.until),
        None if asked.key is None else asked.key.encode(),
        header,
    )


def _given_ranges(text: str, present: list[Range]) -> Iterator[Range]:
    ends = {each.partition: each.end for each in present}
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            raise typer.BadParameter(f"--offsets: {part} is not PARTITION:FIRST-END")
        partition, start, until = map(int, found.groups())
        if until > ends.get(partition, -1):
            raise typer.BadParameter(f"--offsets: partition {partition} has no offset {until - 1}")
        yield Range(partition, start, until)


def _time_ms(option: str, text: str | None) -> int | None:
    """Return a time as Unix time in ms. A time without a zone is in UTC."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{option}: {text} is no ISO 8601 time") from None
    return round((found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _print_plan(desk: Desk, asked: Asked, selection: Selection, summary: PlanSummary, as_json: bool) -> None:
    offsets = ",".join(f"{each.partition}:{each.start}-{each.end}" for each in selection.ranges)
    if as_json:
        content = {"redrive": dict(summary.targets), "remain": dict(summary.remaining), "repaired": summary.repaired}
        typer.echo(json.dumps({"topic": asked.topic, **content, "offsets": offsets, "digest": summary.digest}))
        return
    targets = ", ".join(f"{topic} {count:,}" for topic, count in summary.targets.most_common())
    print_line(f"{asked.topic}: {summary.count:,} records would be redriven{f': {targets}' if targets else ''}")
    print_lines(f"  remain: {code} {count:,}" for code, count in summary.remaining.most_common())
    print_lines(_repair_lines(desk, asked, summary))
    if summary.count:
        print_line(f"to apply this plan, repeat the command with: --offsets {offsets} --apply {summary.digest}")


def _repair_lines(desk: Desk, asked: Asked, summary: PlanSummary) -> Iterator[str]:
    """Yield how many records the repairs change, and the first of them before and after, as `show` shows contents."""
    if not asked.repairs:
        return
    yield f"  repaired by {', '.join(repair.name for repair in asked.repairs)}: {summary.repaired:,}"
    example = summary.example
    if example is None or example.unrepaired is None:
        return
    before = example.unrepaired
    yield f"  example {before.record.place}"
    for word, letter in (("before", before), ("after", replace(before, record=example.source))):
        shown = shown_contents(letter, desk.policy_of(letter.topic), desk.limits)
        value = None if shown is None else shown_beginning(shown.value)
        if value is not None:
            yield f"    value {word} ({value['size']} bytes): {value['text']}"


def _print_result(topic: str, result: Redriven, is_stopped: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"topic": topic, "written": result.written, "given_up": dict(result.given_up)}))
        return
    print_line(f"{topic}: {result.written:,} records redriven, {result.given_up.total():,} given up")
    print_lines(f"  given up: {code} {count:,}" for code, count in result.given_up.most_common())
    if is_stopped:
        print_line("stopped by --stop-after; the same command continues")
