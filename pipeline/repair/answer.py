"""What a repair changes, in a sentence, and what follows from it."""

from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.repair.reasons import added_up
from sluicegate.pipeline.report.answer import Answer, counted, in_words, share


def answer(summary: Mapping[str, Any]) -> Answer:
    """Of all topics, dry run or not."""
    topics = summary["topics"].values()
    records = sum(topic["records"] for topic in topics)
    repaired, left = (added_up(topics, what) for what in ("repaired", "undiagnosed"))
    changed, stay = sum(repaired.values()), sum(left.values())
    verb = "have" if summary["applied"] else "would have"
    of = f" ({in_words(repaired)})" if changed else ""
    rest = f"; {counted(stay, 'damaged one')} {'is' if stay == 1 else 'are'} left as they are" if stay else ""
    found = f"{share(changed, records)} of {counted(records, 'record')} {verb} another timestamp{of}{rest}."
    return Answer(found, _to_do(summary, changed + stay))


def _to_do(summary: Mapping[str, Any], damaged: int) -> str:
    if summary["obstacles"]:
        return f"Clear away first what would stop --apply, then plan again: {'; '.join(summary['obstacles'])}"
    if summary["applied"]:
        return (
            "Compare the clean topic with sluicegate-spark verify --plan and this folder, then let readers change to "
            "it; they need isolation.level=read_committed."
        )
    if not damaged:
        return "Nothing: there is no damage. No clean topic is made, with --apply neither: it would only be a copy."
    return "Look at the examples, before and after. If they are right, give the same command with --apply."
