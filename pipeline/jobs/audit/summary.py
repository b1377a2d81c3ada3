"""What is said of one topic: what became of its records, why, by whom, and what bounds on trial would reject."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluicegate.pipeline.jobs.audit.findings import GOOD, UNCHECKED, VERDICTS, What
from sluicegate.validation.rules.rule import Mode

_SUMS = ("batches", "records", "bad_records")
_WHO = ("producer_id", "codec")
_KEPT_OUT = (Mode.REJECT.value, Mode.QUARANTINE.value)

Rows = Sequence[Mapping[str, Any]]


def topic_summary(rows: Mapping[What, Rows]) -> dict[str, Any]:
    """From one topic's rows of each table."""
    batches = rows[What.BATCHES]
    return {
        **{name: sum(row[name] for row in batches) for name in _SUMS},
        "verdicts": {
            verdict: {name: sum(row[name] for row in batches if row["verdict"] == verdict) for name in _SUMS}
            for verdict in VERDICTS
        },
        "findings": _by(rows[What.FINDINGS], ("verdict", "reason", "rule")),
        "producers": _producers(batches, rows[What.FINDINGS]),
        "rehearsed": sorted(_by(rows[What.REHEARSED], ("key", "max_ms")), key=lambda row: (row["key"], row["max_ms"])),
        "gone": [{name: row[name] for name in ("partition", "first_offset", "last_offset")} for row in rows[What.GONE]],
    }


def in_a_sentence(topics: Mapping[str, Mapping[str, Any]]) -> str:
    """The finding, before any list."""
    records = sum(topic["records"] for topic in topics.values())
    if records == 0:
        return "There are no records to audit."
    said = []
    kept_out = _records(topics, _KEPT_OUT)
    if kept_out:
        bad = sum(topic["verdicts"][verdict]["bad_records"] for topic in topics.values() for verdict in _KEPT_OUT)
        said.append(f"{_share(kept_out, records)} would not have come in ({bad:,} bad; batches are rejected whole)")
    for verdict, words in ((Mode.FIX.value, "would have been fixed"), (Mode.OBSERVE.value, "would have been told of")):
        count = _records(topics, (verdict,))
        if count:
            said.append(f"{_share(count, records)} are in batches that {words}")
    unchecked = _records(topics, (UNCHECKED,))
    if unchecked:
        said.append(f"{_share(unchecked, records)} are of topics that nothing is asked of (checks: none)")
    if not said:
        return f"All of {records:,} records keep the policies."
    return f"Of {records:,} records {'; '.join(said)}."


def what_to_do(topics: Mapping[str, Mapping[str, Any]]) -> str:
    """What follows from it, in a sentence."""
    worst = max(
        ((name, row) for name, topic in topics.items() for row in topic["findings"]),
        key=lambda found: found[1]["records"],
        default=None,
    )
    if worst is None:
        return "Such policies can be put in force: nothing that is stored would have been rejected."
    name, row = worst
    return (
        f"Most of it is {cause_of(row)!r} on {name}: look at its samples and producers, mend the producer, or change "
        "the policy and audit again. Nothing is rejected where the topic's mode is observe."
    )


def worst_first(topics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Topics by how many records are in batches that something is told of, then by how many they have."""

    def told(name: str) -> int:
        return sum(row["records"] for row in topics[name]["findings"])

    return sorted(topics, key=lambda name: (-told(name), -topics[name]["records"], name))


def cause_of(row: Mapping[str, Any]) -> str:
    """A finding's rule, or its reason."""
    return f"rule {row['rule']}" if row["rule"] else str(row["reason"])


def _records(topics: Mapping[str, Mapping[str, Any]], verdicts: Iterable[str]) -> int:
    return sum(topic["verdicts"][verdict]["records"] for topic in topics.values() for verdict in verdicts)


def _share(count: int, of: int) -> str:
    return f"{count:,} ({100 * count / of:.4g} %)"


def _by(rows: Rows, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Rows with these in common, added up; those with most records first."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        who = {key: row[key] for key in keys}
        hours = {"first_hour": row["first_hour"], "last_hour": row["last_hour"]}
        entry = found.setdefault(tuple(who.values()), who | dict.fromkeys(_SUMS, 0) | hours)
        for name in _SUMS:
            entry[name] += row[name]
        entry["first_hour"] = min(entry["first_hour"], row["first_hour"])
        entry["last_hour"] = max(entry["last_hour"], row["last_hour"])
    return sorted(found.values(), key=lambda entry: (-entry["records"], *map(str, (entry[key] for key in keys))))


def _producers(batches: Rows, findings: Rows) -> list[dict[str, Any]]:
    """By producer id and codec, those with most records of which something is told first."""
    found = _by(batches, _WHO)
    found_of, batches_of = (_by_producer(rows) for rows in (findings, batches))
    for entry in found:
        who = tuple(entry[key] for key in _WHO)
        entry["findings"] = _by(found_of.get(who, []), ("verdict", "reason", "rule"))
        entry["told"] = sum(row["records"] for row in batches_of[who] if row["verdict"] not in (GOOD, UNCHECKED))
    return sorted(found, key=lambda entry: (-entry["told"], -entry["records"], entry["producer_id"]))


def _by_producer(rows: Rows) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in _WHO), []).append(row)
    return found
