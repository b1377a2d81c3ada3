"""What an extraction has written, in a sentence, and what follows from it."""

from collections.abc import Mapping
from typing import Any

from sluicegate.pipeline.report.answer import Answer, counted, share


def answer(summary: Mapping[str, Any], extractor: str) -> Answer:
    """Of all partitions."""
    counts = [each for topic in summary["topics"].values() for each in topic["partitions"].values()]
    records, skipped = (sum(each[name] for each in counts) for name in ("records", "skipped"))
    read = records + skipped
    found = (
        f"The extractor {extractor} gave {share(records, read)} of {counted(read, 'record')} an event time, "
        f"and skipped {skipped:,}."
    )
    late = sum(each["too_late"] for each in counts)
    if late:
        return Answer(
            found,
            f"{late:,} have a time that is later than Spark's timestamps reach: the column timestamp tells the number, "
            "sluicegate-spark profile tells by which producers, and sluicegate-spark repair mends the topic.",
        )
    if skipped:
        return Answer(
            found,
            "What is skipped has a negative timestamp: sluicegate-spark profile tells by which producers. The "
            "extractors previous and wallclock keep such records.",
        )
    return Answer(found, "Nothing is missing. The same command goes on behind these records with what has come since.")
