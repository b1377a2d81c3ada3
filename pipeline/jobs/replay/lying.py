"""Where that lies which a replay takes back: dead letters in topics of their own, or what a validation has listed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.replay.found import FoundLetters, listed_in, passed_over, ranges_of
from sluicegate.pipeline.jobs.replay.letters import KeptLetters, Letters
from sluicegate.pipeline.jobs.replay.origins import named_in
from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.results import Results
from sluicegate.pipeline.topics import Topics

DEAD_LETTER, FOUND_RECORD = "dead letter", "listed record"
"""What one is called."""


@dataclass(frozen=True, slots=True)
class Lying:
    """`letters` within `ranges`, each `called` so. `targets`: the topics that those go to which lie in some ranges.
    `passed_over`: a sentence for each partition where some lie before these ranges.
    """

    letters: Letters
    ranges: list[OffsetRange]
    called: str
    targets: Callable[[SparkSession, Sequence[OffsetRange]], set[str]]
    passed_over: Callable[[Sequence[OffsetRange]], list[str]]


def lying_kept(topics: Topics) -> Lying:
    """All that dead-letter topics hold. None goes to one of these."""
    letters = KeptLetters(topics.options)
    return Lying(
        letters,
        topics.ranges(),
        DEAD_LETTER,
        lambda spark, ranges: named_in(spark, letters, ranges) - set(topics.names),
        lambda _ranges: [],
    )


def lying_found(spark: SparkSession, topics: Topics, folder: str) -> Lying:
    """What a validation in the folder lists of the topics, which each goes back to. Raises NoFindings."""
    listed = listed_in(Results(spark, folder), topics.names)
    return Lying(
        FoundLetters(topics.options, spark.sparkContext.broadcast(listed)),
        ranges_of(listed, topics.ranges()),
        FOUND_RECORD,
        lambda _spark, _ranges: set(topics.names),
        lambda ranges: passed_over(listed, ranges),
    )
