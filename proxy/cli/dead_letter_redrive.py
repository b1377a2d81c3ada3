"""Plans and applies `sluicegate dead-letters redrive`."""

import getpass
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import typer

from sluicegate.dead_letters.cluster import Cluster, Range, present_ranges
from sluicegate.dead_letters.contents import shown_contents
from sluicegate.dead_letters.plan import PlanSummary
from sluicegate.dead_letters.redrive_job import DifferentClusters, Plan, PlanChanged, RedriveJob, RedriveRequest
from sluicegate.dead_letters.redriving import Pace, Redriven
from sluicegate.dead_letters.repairs import LetterRepair
from sluicegate.dead_letters.selection import LetterSelection
from sluicegate.dead_letters.transactional_writer import Fenced
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


def redrive_topic(desk: Desk, target: Desk, asked: Asked, apply: str | None, pace: Pace, as_json: bool) -> int:
    """Print the plan, or apply it if its digest is `apply`. Return the exit status. Raises ClusterUnavailable.

    `desk` has the dead letters and the marks, and `target` the original topics.
    """
    try:
        job = RedriveJob(desk.cluster, _request(desk, asked), target.validator(now_ms(), asked.time), target.cluster)
        if apply is None:
            _print_plan(target, asked, job.plan(), as_json)
            return 0
        result = job.apply(apply, getpass.getuser(), pace)
    except DifferentClusters as error:
        end([f"sluicegate dead-letters: {error}"], USAGE)
    except PlanChanged as error:
        end([f"sluicegate dead-letters: {error}"])
    except Fenced:
        end(
            [f"sluicegate dead-letters: another run redrives {asked.topic} and has taken over; wait until it ends"],
            USAGE,
        )
    _print_result(asked.topic, result, pace, as_json)
    return 1 if result.given_up else 0


def _request(desk: Desk, asked: Asked) -> RedriveRequest:
    return RedriveRequest(
        asked.topic,
        _selection(desk.cluster, asked),
        None if asked.fix is None else TimeFix(asked.fix.value),
        asked.repairs,
        asked.partition is TargetPartition.SAME,
        asked.max_attempts,
        asked.marks,
        asked.is_at_least_once,
        desk.read_letter,
    )


def _selection(cluster: Cluster, asked: Asked) -> LetterSelection:
    present = present_ranges(cluster, asked.topic)
    ranges = present if asked.offsets is None else tuple(_given_ranges(asked.offsets, present))
    header = None
    if asked.header is not None:
        name, separator, value = asked.header.partition("=")
        if not separator:
            raise typer.BadParameter("--header: write NAME=VALUE")
        header = name.encode(), value.encode()
    return LetterSelection(
        tuple(each for each in ranges if each.start < each.end),
        asked.group,
        _time_ms("--since", asked.since),
        _time_ms("--until", asked.until),
        None if asked.key is None else asked.key.encode(),
        header,
    )


def _given_ranges(text: str, present: Sequence[Range]) -> Iterator[Range]:
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


def _print_plan(desk: Desk, asked: Asked, plan: Plan, as_json: bool) -> None:
    summary = plan.summary
    offsets = ",".join(f"{each.partition}:{each.start}-{each.end}" for each in plan.selection.ranges)
    if as_json:
        content = {"redrive": dict(summary.targets), "remain": dict(summary.remaining), "repaired": summary.repaired}
        typer.echo(json.dumps({"topic": asked.topic, **content, "offsets": offsets, "digest": plan.digest}))
        return
    targets = ", ".join(f"{topic} {count:,}" for topic, count in summary.targets.most_common())
    print_line(f"{asked.topic}: {summary.count:,} records would be redriven{f': {targets}' if targets else ''}")
    print_lines(f"  remain: {code} {count:,}" for code, count in summary.remaining.most_common())
    print_lines(_repair_lines(desk, asked, summary))
    if summary.count:
        print_line(f"to apply this plan, repeat the command with: --offsets {offsets} --apply {plan.digest}")


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
    for word, letter in (("before", before), ("after", before._replace(record=example.source))):
        shown = shown_contents(letter, desk.policy_of(letter.topic), desk.policies.limits)
        value = None if shown is None else shown_beginning(shown.value)
        if value is not None:
            yield f"    value {word} ({value['size']} bytes): {value['text']}"


def _print_result(topic: str, result: Redriven, pace: Pace, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"topic": topic, "written": result.written, "given_up": dict(result.given_up)}))
        return
    print_line(f"{topic}: {result.written:,} records redriven, {result.given_up.total():,} given up")
    print_lines(f"  given up: {code} {count:,}" for code, count in result.given_up.most_common())
    if pace.is_over(result):
        print_line("stopped by --stop-after; the same command continues")
