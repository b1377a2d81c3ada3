"""Whether two topics are the same, in a sentence, and what follows from it."""

from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.report.answer import Answer, in_words

_WRONGLY = "repaired wrongly"


def answer(summary: Mapping[str, Any]) -> Answer:
    """The verdict, with how many differ and how."""
    names = f"{summary['source']} and {summary['target']}"
    if summary["same"]:
        repaired = sum(summary["repairs"].values())
        return Answer(
            f"{names} hold the same records, declared repairs aside.",
            f"Readers can change to {summary['target']}: all of its {summary['records']['target']:,} records are "
            f"accounted for, {repaired:,} of them as repaired.",
        )
    found = f"{names} do NOT hold the same records, declared repairs aside: {in_words(summary['differences'])}."
    if summary["differences"][_WRONGLY]:
        why = "Records whose declared repair is not what it says are in neither table: repair into a new topic."
    else:
        why = "The table differences names each by partition and offset."
    grown = "" if summary["records"]["source"] == summary["records"]["target"] else (
        " If the source was written to since, compare with --plan, which goes as far as the repair did."
    )  # fmt: skip
    return Answer(found, f"Leave readers where they are. {why}{grown}")
