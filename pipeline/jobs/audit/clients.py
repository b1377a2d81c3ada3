"""Who sent what a policy finds at rest, as far as the proxy's own events tell: a client's name is not stored.

Events of what was forwarded all the same (modes observe, fix, rehearse) are of records that are stored. Those of what
was rejected are of records that are not, and are counted apart.
"""

from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

_EVENT = (
    "version int, time string, client_id string, topic string, partition int, mode string, reason string, "
    "records bigint, bad_records bigint, rules array<struct<rule: string, bad_records: bigint>>"
)
_FORWARDED = ("observe", "fix")
_KEYS = ("topic", "client_id", "mode", "reason", "rule")


def clients_of(spark: SparkSession, path: str, topics: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """By topic, from files of events (a file, a folder, a glob): batches and bad records by client, mode, reason and
    rule, those with most first. Raises Spark's own exceptions where the files cannot be read.
    """
    event = f.from_json("value", _EVENT).alias("event")
    events = (
        spark.read.text(path)
        .select(event)
        .where((f.col("event.version") == 1) & f.col("event.topic").isin(*topics))
        .where(f.col("event.mode").isin("reject", "quarantine", *_FORWARDED))
    )
    by_rule = events.select("event.*", f.explode_outer("event.rules").alias("broken")).select(
        "topic",
        "client_id",
        "mode",
        "reason",
        f.col("broken.rule").alias("rule"),
        f.coalesce("broken.bad_records", "bad_records").alias("bad_records"),
        "records",
    )
    sums = (f.count("*").alias("batches"), f.sum("records").alias("records"), f.sum("bad_records").alias("bad_records"))
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in topics}
    for row in by_rule.groupBy(*_KEYS).agg(*sums).collect():
        told = row.asDict()
        found[told.pop("topic")].append(told | {"is_stored": told["mode"] in _FORWARDED})
    for its in found.values():
        its.sort(key=lambda row: (-row["records"], *(str(row[key]) for key in _KEYS[1:])))
    return found
