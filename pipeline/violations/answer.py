"""Who is refused most, in a sentence, and what follows from it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.report.answer import Answer, counted, in_words, share
from sluicegate.pipeline.report.names import printable, shortened


def client_name(client_id: str | None) -> str:
    """As a page and a terminal can show it."""
    return printable(client_id or "(no client id)")


def refused_by_client(summary: Mapping[str, Any]) -> Counter[str]:
    """Refused batches."""
    found: Counter[str] = Counter()
    for row in summary["offenders"]:
        found[client_name(row["client_id"])] += row["events"]
    return found


def answer(summary: Mapping[str, Any]) -> Answer:
    """Of all events so far."""
    by_client = refused_by_client(summary)
    total = sum(by_client.values())
    if not total:
        return Answer("No batch was refused in these events.", "Nothing.")
    (worst, its), *_ = by_client.most_common(1)
    reasons: Counter[str] = Counter()
    for row in summary["offenders"]:
        if client_name(row["client_id"]) == worst:
            reasons[printable(row["reason"] or "no reason given")] += row["events"]
    found = (
        f"{shortened(worst)} is refused most: {share(its, total)} of {counted(total, 'refused batch')[:-1]}es"
        if total != 1
        else f"{shortened(worst)} had the one batch that was refused"
    )
    return Answer(
        f"{found} ({in_words(dict(reasons))}).",
        f"Begin with that client: its rows say which topics, since when and until when. There are "
        f"{counted(len(by_client), 'client')} in all.",
    )
