"""Shows a sandbox's violations as lines: for people, and as annotations for GitHub Actions."""

from collections.abc import Iterator, Sequence
from typing import Any

from sluicegate.config.files.source import printable
from sluicegate.proxy.sandbox.violations import Violation, ViolationList, grouped

_RECORDS_SHOWN = 3
# GitHub's limit on annotations per step and level. GitHub ignores further ones.
_MOST_ANNOTATIONS = 10


def lines_of(violations: ViolationList, accepted_records: int) -> Iterator[str]:
    """Yield the report for people."""
    for group in grouped(violations.listed()):
        yield from lines_about(group)
    yield _summary(violations, accepted_records)


def lines_about(group: Sequence[Violation]) -> Iterator[str]:
    """Yield the title and the details for the violations of one client, topic and code."""
    yield _title(group)
    yield from (f"  {line}" for line in details_of(group))


def _summary(violations: ViolationList, accepted_records: int) -> str:
    listed = len(violations.listed())
    others = violations.count - violations.failures
    parts = [
        f"{_counted(accepted_records, 'record')} accepted",
        f"{_counted(violations.failures, 'violation') if violations.failures else 'no violation'} failed the run",
    ]
    if others:
        parts.append(f"{_counted(others, 'violation')} {'was' if others == 1 else 'were'} allowed or only observed")
    if listed < violations.count:
        parts.append(f"the report lists the first {listed}")
    return f"sluicegate sandbox: {', '.join(parts)}"


def _counted(count: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("h") else f"{what}s"
    return f"{count} {what if count == 1 else plural}"


def annotations_of(violations: ViolationList) -> Iterator[str]:
    """Yield workflow commands of GitHub Actions, one for each client, topic and code."""
    groups = list(grouped(violation for violation in violations.listed() if violation.fails))
    for group in groups[:_MOST_ANNOTATIONS]:
        title = _escaped(printable(_title(group)), ":,")
        yield f"::error title={title}::{_escaped(chr(10).join(map(printable, details_of(group))), '')}"


def _title(group: Sequence[Violation]) -> str:
    first = group[0]
    outcome = "rejected" if first.fails else "allowed" if first.is_rejection else "observed"
    records = sum(violation.event["bad_records"] for violation in group)
    counts = f"{_counted(len(group), 'batch')}, {_counted(records, 'bad record')}"
    return f"{first.event['topic'] or '(unknown topic)'}: {first.code} ({outcome}: {counts})"


def details_of(group: Sequence[Violation]) -> Iterator[str]:
    """Yield lines about the violations of one client, topic and code: client, records, reason, policy and fix."""
    first = group[0]
    event = first.event
    yield f"client   {client_of(event)}"
    yield from (f"record   {record_of(event['partition'], sample)}" for sample in event["samples"][:_RECORDS_SHOWN])
    yield f"error    {event['error']}: {event['message'] or event['reason_text']}"
    policy = policy_of(event)
    if policy is not None:
        yield f"policy   {policy}"
    yield f"fix      {first.fix}"


def client_of(event: dict[str, Any]) -> str:
    """Return an event's client in one line."""
    software = " ".join(part for part in (event["software_name"], event["software_version"]) if part)
    return ", ".join(part for part in (event["client_id"] or "(no client id)", software, event["principal"]) if part)


def record_of(partition: int, sample: dict[str, Any]) -> str:
    """Return a bad record in one line: its position, timestamp and contents, and the violation."""
    parts = [f"{sample['index']} of a batch for partition {partition}, timestamp {sample['timestamp']}"]
    if "value" in sample:
        parts += [f"key {_content(sample['key'])}", f"value {_content(sample['value'])}"]
    return f"{', '.join(parts)}: {sample.get('diagnosis') or sample['reason']}"


def _content(shown: dict[str, Any] | None) -> str:
    return "null" if shown is None else f'"{shown["text"]}"'


def policy_of(event: dict[str, Any]) -> str | None:
    """Return the violated value with its place, or None if the violation has no configurable value."""
    bound = event["bound"]
    if bound is None:
        return None
    return f"{bound['key']}: {bound['value']} ({bound.get('place') or bound['source']})"


def _escaped(text: str, further: str) -> str:
    """Escape a string for workflow commands (actions/toolkit, command.ts)."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    for character in further:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
