"""Plans and applies `sluicegate dead-letters redrive`."""

import getpass
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import typer

from sluicegate.dead_letters.cluster import Cluster, Range, ranges_of
from sluicegate.dead_letters.mark_topic import create_marks, read_marks, topic_id_of
from sluicegate.dead_letters.plan import Planner, PlanSummary
from sluicegate.dead_letters.redriving import Origin, Pace, Redrive, Redriven, decisions
from sluicegate.dead_letters.selection import Selection
from sluicegate.dead_letters.transactional_writer import Fenced, TransactionalWriter
from sluicegate.proxy.cli.console import end, print_line, print_lines
from sluicegate.proxy.cli.dead_letter_access import USAGE, Desk, FixTime, RecordTime, TargetPartition
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


def redrive_topic(
    desk: Desk, asked: Asked, apply: str | None, rate: float | None, stop_after: int | None, as_json: bool
) -> int:
    """Print the plan, or apply it if its digest is `apply`. Return the exit status. Raises ClusterUnavailable."""
    cluster, topic = desk.cluster, asked.topic
    topic_id = topic_id_of(cluster, topic)
    writer = None
    try:
        if apply is not None:
            create_marks(cluster, asked.marks)
            writer = TransactionalWriter(cluster, topic, asked.marks)  # before the marks are read, so that none follows
        selection = _selection(cluster, asked)
        planner = _planner(desk, asked, topic_id)
        summary = PlanSummary(_terms(asked, topic_id, selection))
        for decision in decisions(cluster, topic, selection, planner, apply or ""):
            summary.add(decision)
        if writer is None or apply is None:
            _print_plan(asked, selection, summary, as_json)
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


def _planner(desk: Desk, asked: Asked, topic_id: str) -> Planner:
    return Planner(
        desk.validator(now_ms(), asked.time),
        read_marks(desk.cluster, asked.marks, asked.topic, topic_id),
        desk.cluster.topics(),
        None if asked.fix is None else TimeFix(asked.fix.value),
        asked.max_attempts,
        asked.partition is TargetPartition.SAME,
    )


def _terms(asked: Asked, topic_id: str, selection: Selection) -> str:
    """Return what a plan depends on besides the letters and the policies."""
    fix = None if asked.fix is None else asked.fix.value
    return json.dumps([asked.topic, topic_id, selection.text(), asked.time.value, fix, asked.partition.value])


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


def _print_plan(asked: Asked, selection: Selection, summary: PlanSummary, as_json: bool) -> None:
    offsets = ",".join(f"{each.partition}:{each.start}-{each.end}" for each in selection.ranges)
    if as_json:
        content = {"redrive": dict(summary.targets), "remain": dict(summary.remaining)}
        typer.echo(json.dumps({"topic": asked.topic, **content, "offsets": offsets, "digest": summary.digest}))
        return
    targets = ", ".join(f"{topic} {count:,}" for topic, count in summary.targets.most_common())
    print_line(f"{asked.topic}: {summary.count:,} records would be redriven{f': {targets}' if targets else ''}")
    print_lines(f"  remain: {code} {count:,}" for code, count in summary.remaining.most_common())
    if summary.count:
        print_line(f"to apply this plan, repeat the command with: --offsets {offsets} --apply {summary.digest}")


def _print_result(topic: str, result: Redriven, is_stopped: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"topic": topic, "written": result.written, "given_up": dict(result.given_up)}))
        return
    print_line(f"{topic}: {result.written:,} records redriven, {result.given_up.total():,} given up")
    print_lines(f"  given up: {code} {count:,}" for code, count in result.given_up.most_common())
    if is_stopped:
        print_line("stopped by --stop-after; the same command continues")
