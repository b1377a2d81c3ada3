"""Prints what `sluicegate dead-letters` has found, as tables and as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from sluicegate.dead_letters.groups import BoundedCounts, Group
from sluicegate.dead_letters.survey import LetterTopic
from sluicegate.dead_letters.verdict_counts import Kind, VerdictCounts
from sluicegate.dead_letters.verdicts import VALID
from sluicegate.proxy.cli.dead_letter_access import Desk, Dimension, RecordTime
from sluicegate.proxy.reload.letter_groups import contents_json, group_json
from sluicegate.proxy.reload.letter_policies import LetterPolicies
from sluicegate.proxy.server.clock import now_ms
from sluicegate.proxy.watching.formatting import record_time

_MOST_NAMED = 3
_TEXT_CHARACTERS = 100


def survey_lines(found: Sequence[LetterTopic], desk: Desk) -> Iterator[str]:
    """Yield a table of the topics."""
    if not found:
        yield "no topic has dead letters"
        return
    rows = [("topic", "records", "letters read", "formats", "oldest", "newest", "from topics", "owners", "valid now")]
    for each in found:
        read = f"{len(each.letters):,} of {each.sampled:,}"
        owners = ", ".join(_owners(each, desk)) or "-"
        times = record_time(each.oldest), record_time(each.newest)
        accepted = _accepted(each, desk)
        valid = "-" if accepted is None else f"{accepted / len(each.letters):.0%}"
        formats = ", ".join(each.formats)
        rows.append((each.name, f"{each.records:,}", read, formats, *times, _named(each.sources), owners, valid))
    yield from _table(rows)


def survey_json(found: Sequence[LetterTopic], desk: Desk) -> list[dict[str, Any]]:
    """Return the topics as JSON."""
    return [
        {
            "topic": each.name,
            "records": each.records,
            "read": each.sampled,
            "letters": len(each.letters),
            "formats": each.formats,
            "oldest_ms": each.oldest,
            "newest_ms": each.newest,
            "from_topics": dict(each.sources),
            "owners": _owners(each, desk),
            "accepted_now": _accepted(each, desk),
        }
        for each in found
    ]


def groups_lines(topic: str, groups: Sequence[Group], others: int, desk: Desk) -> Iterator[str]:
    """Yield a paragraph for each group."""
    yield _summary(topic, groups, others)
    for group in groups:
        yield ""
        yield from _group_lines(group, desk)


def counts_lines(topic: str, groups: Sequence[Group], by: Dimension, desk: Desk) -> Iterator[str]:
    """Yield a table of the letters by client, original topic, owner or hour."""
    counts = BoundedCounts()
    for group in groups:
        for value, count in _values_of(group, by):
            counts.add((desk.owner_of(value) if by is Dimension.OWNER else value) or "-", count)
    yield _summary(topic, groups, 0)
    ordered = sorted(counts.items()) if by is Dimension.HOUR else counts.ordered()
    named = [
        (record_time(int(each)) if each.lstrip("-").isdigit() and by is Dimension.HOUR else each, count)
        for each, count in ordered
    ]
    yield from _table([(by.value, "letters"), *((each, f"{count:,}") for each, count in named)])


def groups_json(topic: str, groups: Sequence[Group], others: int, desk: Desk) -> dict[str, Any]:
    """Return the groups as JSON."""
    return {"topic": topic, "not_letters": others, "groups": [group_json(group, _shown_by(desk)) for group in groups]}


def verdicts_lines(topic: str, counts: VerdictCounts) -> Iterator[str]:
    """Yield a table of the verdicts."""
    letters = counts.counts.total() + counts.obstacles.total()
    yield f"{topic}: a proxy would accept {counts.accepted:,} of {letters:,} dead letters now"
    rows = [("verdict", "letters", "valid after")]
    for kind, count in counts.counts.most_common():
        fixes = ", ".join(f"{name} {number:,}" for name, number in counts.fixes.get(kind, Counter()).most_common())
        rows.append((_verdict_text(kind), f"{count:,}", fixes or "-"))
    rows += [(f"cannot be validated: {code}", f"{count:,}", "-") for code, count in counts.obstacles.most_common()]
    yield from _table(rows)


def verdicts_json(topic: str, counts: VerdictCounts) -> dict[str, Any]:
    """Return the verdicts as JSON."""
    return {
        "topic": topic,
        "accepted": counts.accepted,
        "verdicts": [
            {
                "is_accepted": kind[0],
                "code": kind[1],
                "rules": list(kind[2]),
                "letters": count,
                "valid_after": dict(counts.fixes.get(kind, {})),
            }
            for kind, count in counts.counts.most_common()
        ],
        "obstacles": dict(counts.obstacles),
    }


def _verdict_text(kind: Kind) -> str:
    is_accepted, code, rules = kind
    if code == VALID:
        return VALID
    named = f"{code} ({', '.join(rules)})" if rules else code
    return f"accepted in spite of {named}" if is_accepted else named


def _values_of(group: Group, by: Dimension) -> list[tuple[str, int]]:
    values = {Dimension.CLIENT: group.clients, Dimension.HOUR: group.hours}.get(by, group.topics)
    return values.ordered()


def _summary(topic: str, groups: Sequence[Group], others: int) -> str:
    letters = sum(group.count for group in groups)
    ending = f"; {counted(others, 'other record')}" if others else ""
    return f"{topic}: {counted(letters, 'dead letter')} in {counted(len(groups), 'group')}{ending}"


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, for example "1 group" or "2 groups"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _group_lines(group: Group, desk: Desk) -> Iterator[str]:
    cause = group.cause
    rules = f" (rule {', '.join(cause.rules)})" if cause.rules else ""
    yield f"{group.id}  {group.count:,} × {cause.error or 'no error'}{rules}"
    if cause.exact:
        yield f"  {cause.exact}"
    if cause.stage:
        yield f"  stage {cause.stage}"
    yield f"  {record_time(group.first)} to {record_time(group.last)}, {_named(group.formats.ordered())}"
    yield f"  from {_named(group.topics.ordered())}"
    clients = [each for each in group.clients.ordered() if each[0]]
    if clients:
        yield f"  clients {_named(clients)}"
    if group.schemas:
        yield f"  schema ids {_named(group.schemas.ordered())}"
    yield f"  example {group.example.record.place}"
    shown = contents_json(group, _shown_by(desk))
    for part in ("key", "value"):
        if shown is not None and shown[part] is not None:
            yield f"  {part} ({shown[part]['size']} bytes): {shown[part]['text'][:_TEXT_CHARACTERS]}"


def _shown_by(desk: Desk) -> LetterPolicies | None:
    """Return the policies that decide which contents are shown; None without a configuration."""
    return desk.policies if desk.has_policies else None


def _accepted(found: LetterTopic, desk: Desk) -> int | None:
    """Return how many of the letters that were read a proxy would accept now; None without policies."""
    if not desk.has_policies:
        return None
    counts = VerdictCounts(desk.validator(now_ms(), RecordTime.RECORD))
    for letter in found.letters:
        counts.add(letter)
    return counts.accepted


def _owners(found: LetterTopic, desk: Desk) -> list[str]:
    if not desk.has_policies:
        return []
    return sorted({owner for topic, _ in found.sources if (owner := desk.owner_of(topic))})


def _named(counts: Sequence[tuple[str, int]]) -> str:
    """Return the most frequent values."""
    named = ", ".join(f"{value} {count:,}" for value, count in counts[:_MOST_NAMED])
    return named + (f" and {len(counts) - _MOST_NAMED} more" if len(counts) > _MOST_NAMED else "")


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
