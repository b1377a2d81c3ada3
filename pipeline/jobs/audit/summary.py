"""Builds the summary of one topic: verdicts, reasons, producers, and rejections by rehearsed bounds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluicegate.pipeline.jobs.audit.findings import GOOD, MASK, PERHAPS, UNCHECKED, VERDICTS, RowKind
from sluicegate.validation.rules.rule import Mode

_SUMS = ("batches", "records", "bad_records")
_PRODUCER = ("producer_id", "codec")
_KEPT_OUT = (Mode.REJECT.value, Mode.QUARANTINE.value)
_FORWARDED = {
    Mode.FIX.value: "would have been fixed",
    Mode.MARK.value: "would have been marked",
    Mode.OBSERVE.value: "would have been reported",
    Mode.COPY.value: "would have been reported and copied to a dead-letter topic",
    MASK: "would have had sensitive fields masked or hashed",
}

Rows = Sequence[Mapping[str, Any]]


def topic_summary(rows: Mapping[RowKind, Rows]) -> dict[str, Any]:
    """Return the summary of one topic from its rows in each table."""
    batches = rows[RowKind.BATCHES]
    return {
        **{name: sum(row[name] for row in batches) for name in _SUMS},
        "verdicts": {
            verdict: {name: sum(row[name] for row in batches if row["verdict"] == verdict) for name in _SUMS}
            for verdict in VERDICTS
        },
        "findings": _by(rows[RowKind.FINDINGS], ("verdict", "reason", "rule")),
        "producers": _producers(batches, rows[RowKind.FINDINGS]),
        "rehearsed": sorted(
            _by(rows[RowKind.REHEARSED], ("key", "max_ms")), key=lambda row: (row["key"], row["max_ms"])
        ),
        "missing": [
            {name: row[name] for name in ("partition", "first_offset", "last_offset")} for row in rows[RowKind.MISSING]
        ],
    }


def first_line(topics: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the finding in one sentence."""
    records = sum(topic["records"] for topic in topics.values())
    if records == 0:
        return "There are no records to audit."
    parts = []
    kept_out = _records(topics, _KEPT_OUT)
    if kept_out:
        bad = sum(topic["verdicts"][verdict]["bad_records"] for topic in topics.values() for verdict in _KEPT_OUT)
        parts.append(f"{_share(kept_out, records)} would have been kept out ({bad:,} bad; batches are rejected whole)")
    for verdict, words in _FORWARDED.items():
        count = _records(topics, (verdict,))
        if count:
            parts.append(f"{_share(count, records)} are in batches that {words}")
    perhaps = _by([row for topic in topics.values() for row in topic["findings"]], ("verdict", "reason"))
    for row in perhaps:
        if row["verdict"] == PERHAPS:
            parts.append(
                f"{_share(row['bad_records'], records)} are perhaps out of bounds ({row['reason']}): brokers do not "
                "store when these records were appended"
            )
    unchecked = _records(topics, (UNCHECKED,))
    if unchecked:
        parts.append(f"{_share(unchecked, records)} are in topics without checks (checks: none)")
    if not parts:
        return f"All {records:,} records comply with the policies."
    return f"Of {records:,} records {'; '.join(parts)}."


def recommendation(topics: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the recommendation in one sentence."""
    worst = max(
        ((name, row) for name, topic in topics.items() for row in topic["findings"]),
        key=lambda found: found[1]["records"],
        default=None,
    )
    if worst is None:
        return "The policies can be enforced: no stored record would have been rejected."
    name, row = worst
    return (
        f"The main cause is {cause_of(row)!r} on {name}: check its samples and producers, fix the producer or change "
        f"the policy, then audit again. With mode: observe the proxy rejects nothing."
    )


def worst_first(topics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the topics sorted by their number of records in bad batches, then by their number of records."""

    def reported_records(name: str) -> int:
        return sum(row["records"] for row in topics[name]["findings"])

    return sorted(topics, key=lambda name: (-reported_records(name), -topics[name]["records"], name))


def cause_of(row: Mapping[str, Any]) -> str:
    """Return a finding's rule, or its reason."""
    cause = f"rule {row['rule']}" if row["rule"] else str(row["reason"])
    return f"{cause}, perhaps" if row.get("verdict") == PERHAPS else cause


def _records(topics: Mapping[str, Mapping[str, Any]], verdicts: Iterable[str]) -> int:
    return sum(topic["verdicts"][verdict]["records"] for topic in topics.values() for verdict in verdicts)


def _share(count: int, of: int) -> str:
    return f"{count:,} ({100 * count / of:.4g} %)"


def _by(rows: Rows, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Aggregate rows by these keys, and sort them by number of records, largest first."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        group = {key: row[key] for key in keys}
        hours = {"first_hour": row["first_hour"], "last_hour": row["last_hour"]}
        entry = found.setdefault(tuple(group.values()), group | dict.fromkeys(_SUMS, 0) | hours)
        for name in _SUMS:
            entry[name] += row[name]
        entry["first_hour"] = min(entry["first_hour"], row["first_hour"])
        entry["last_hour"] = max(entry["last_hour"], row["last_hour"])
    return sorted(found.values(), key=lambda entry: (-entry["records"], *map(str, (entry[key] for key in keys))))


def _producers(batches: Rows, findings: Rows) -> list[dict[str, Any]]:
    """Return producers by id and codec, sorted by their number of records in bad batches, largest first."""
    found = _by(batches, _PRODUCER)
    found_of, batches_of = (_by_producer(rows) for rows in (findings, batches))
    for entry in found:
        group = tuple(entry[key] for key in _PRODUCER)
        entry["findings"] = _by(found_of.get(group, []), ("verdict", "reason", "rule"))
        entry["reported"] = sum(row["records"] for row in batches_of[group] if row["verdict"] not in (GOOD, UNCHECKED))
    return sorted(found, key=lambda entry: (-entry["reported"], -entry["records"], entry["producer_id"]))


def _by_producer(rows: Rows) -> dict[tuple[Any, ...], list[Mapping[str, Any]]]:
    found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in _PRODUCER), []).append(row)
    return found
