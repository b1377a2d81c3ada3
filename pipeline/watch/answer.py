"""What a watch has seen so far, in a sentence, and what follows from it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.report.answer import Answer, counted, in_words, share
from sluicegate.pipeline.report.names import printable
from sluicegate.pipeline.watch.findings import in_a_line


def answer(summary: Mapping[str, Any]) -> Answer:
    """Of all batches."""
    topics = summary["topics"].values()
    records = sum(topic["records"] for topic in topics)
    damage = summed(topic["damage"] for topic in topics)
    violations = summed(topic["violations"] for topic in topics)
    parts = [f"{share(damage.total(), records)} have a damaged timestamp ({in_words(damage)})"] if damage else []
    parts += [f"{violations.total():,} break a policy ({printable(in_words(violations))})"] if violations else []
    broken = sum(topic.get("unreadable", 0) for topic in topics)
    unread = f" Batches that cannot be read: {broken:,}; the table watch_unreadable names them." if broken else ""
    found = f"Of {counted(records, 'record')}, " + (" and ".join(parts) if parts else "none is damaged") + f".{unread}"
    if not summary["findings"]:
        return Answer(found, "Nothing: no producer has begun or changed anything.")
    return Answer(found, f"Look at the newest finding: {printable(in_a_line(summary['findings'][-1]))}.")


def summed(counts: Any) -> Counter[str]:
    """Counts by name, over topics."""
    found: Counter[str] = Counter()
    for each in counts:
        found.update(each)
    return found
