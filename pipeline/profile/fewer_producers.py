"""What comes to the driver is bounded, however many producers a topic has had."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from sluicegate.pipeline.profile.damage import NO_DAMAGE

_MOST_PRODUCERS = 5_000
"""Of a topic; a summary of so many has a megabyte."""


def with_fewer_producers(cells: DataFrame, who: Sequence[str]) -> tuple[DataFrame, dict[str, int]]:
    """The cells, where a topic has more producers than anybody lists with null in the columns `who` of all but those of
    most damaged records, then of most records; and how many these are, by topic.
    """
    counts = {row.topic: row.n for row in cells.groupBy("topic").agg(f.count_distinct(*who).alias("n")).collect()}
    left_out = {topic: n - _MOST_PRODUCERS for topic, n in counts.items() if n > _MOST_PRODUCERS}
    if not left_out:
        return cells, left_out
    damaged = f.sum(f.when(f.col("damage") != NO_DAMAGE, f.col("records")).otherwise(0))
    worst = Window.partitionBy("topic").orderBy(f.desc("damaged"), f.desc("records"), *who)
    ranked = cells.groupBy("topic", *who).agg(damaged.alias("damaged"), f.sum("records").alias("records"))
    kept = ranked.withColumn("rank", f.row_number().over(worst)).where(f.col("rank") <= _MOST_PRODUCERS)
    marked = cells.join(kept.select("topic", *who, f.lit(1).alias("kept")), ["topic", *who], "left")
    return marked.withColumns({name: f.when(f.col("kept") == 1, f.col(name)) for name in who}).drop("kept"), left_out
