"""Records that had a repair's headers already before the repair that is verified: those of a clean topic that somebody
has written back to the first one, or of a clean topic that took its name.

Copied once more they look as if this repair had made them what they are; only the source tells that they were so
before.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f


def without_carried(target: DataFrame, source: DataFrame) -> DataFrame:
    """The target's records, `declared` only where the source has none that is the same as it stands, headers included.

    Both are of `records_of` (records.py). Where the target has more of one kind than the source,
    the source's own are those in their places, or else the last ones: what is written back comes behind.
    """
    carried = source.where("declared")
    places = carried.select("partition", "ordinal", "whole", f.lit(1).alias("in_place"))
    alike = Window.partitionBy("whole").orderBy(f.desc_nulls_last("in_place"), f.desc("partition"), f.desc("offset"))
    looking_so = target.where("declared").select("partition", "offset", "ordinal", "whole")
    numbered = looking_so.join(places, ["partition", "ordinal", "whole"], "left").withColumn(
        "number", f.row_number().over(alike)
    )
    held = carried.groupBy("whole").agg(f.count("*").alias("held"))
    copies = numbered.join(held, "whole").where(f.col("number") <= f.col("held"))
    marked = target.join(copies.select("partition", "offset", f.lit(1).alias("copy")), ["partition", "offset"], "left")
    return marked.withColumn("declared", f.col("declared") & f.col("copy").isNull()).drop("copy")
