"""Records as stored in a topic, with header names that client libraries cannot show."""

from typing import NamedTuple

from pyspark.sql import SparkSession

from sluicegate.pipeline.topics import Topics


class Stored(NamedTuple):
    """A record of a topic."""

    partition: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]


def stored(spark: SparkSession, bootstrap: str, topic: str) -> list[Stored]:
    """All committed records, by partition and in their order."""
    columns = "partition,offset,timestamp,key,value,headers_binary"
    rows = Topics(bootstrap, (topic,)).read(spark, "sluicegate", columns=columns).collect()
    return [
        Stored(
            row["partition"],
            row["timestamp"],
            _bytes(row["key"]),
            _bytes(row["value"]),
            [(bytes(header["key"]), _bytes(header["value"])) for header in row["headers_binary"] or ()],
        )
        for row in sorted(rows, key=lambda row: (row["partition"], row["offset"]))
    ]


def _bytes(held: bytearray | None) -> bytes | None:
    return None if held is None else bytes(held)
