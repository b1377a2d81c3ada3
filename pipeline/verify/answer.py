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
    again = (
        " What is repaired wrongly needs a new repair, into a new topic." if summary["differences"][_WRONGLY] else ""
    )
    grown = "" if summary["records"]["source"] == summary["records"]["target"] else (
        " If the source was written to since, compare with --plan, which goes as far as the repair did."
    )  # fmt: skip
    to_do = f"Leave readers where they are. The table differences names each by partition and offset.{again}{grown}"
    return Answer(found, to_do)
