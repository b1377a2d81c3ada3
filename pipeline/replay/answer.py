"""What becomes of dead letters, in a sentence, and what follows from it."""

from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.report.answer import Answer, counted, share


def answer(summary: Mapping[str, Any]) -> Answer:
    """Of all dead-letter topics, dry run or not."""
    topics = summary["topics"].values()
    records, back, corrected, left = (
        sum(topic[name] for topic in topics) for name in ("records", "replayed", "corrected", "left")
    )
    goes = "went back" if summary["applied"] else "would go back"
    stay = "is left where it is" if left == 1 else "are left where they are"
    found = (
        f"{share(back, records)} of {counted(records, summary['of'])} {goes}, {corrected:,} of them corrected; "
        f"{left:,} {stay}."
    )
    return Answer(found, _to_do(summary["of"], summary["applied"], records, back, left))


def _to_do(called: str, applied: bool, records: int, back: int, left: int) -> str:
    if not records:
        return f"Nothing: there are no {called}s that earlier runs have not taken."
    if applied:
        rest = " What is left is not tried again: it stands in the table left, and in its topic." if left else ""
        return f"Readers of the topics see each once with isolation.level=read_committed.{rest}"
    if not back:
        return "Nothing would be written. --fix, or a function of yours with --by, can correct what is left."
    more = (
        " First see whether --fix or --by can correct what is left: an applied run does not try it again."
        if left
        else ""
    )
    return f"Look at the times before and after. If they are right, give the same command with --apply.{more}"
