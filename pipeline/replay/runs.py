"""What earlier runs in a folder have left where it is, for a list that is whole after a run that was killed, too.

Each run lists what it finds in `runs/N`, and notes there where it began just before it writes. It has done what lies
before the beginning of the next, so what it listed from there on is listed again.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame

from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.results import Results

_FOLDER = "runs"
_BEGUN = "begun.json"
_LEFT = "left"


@dataclass(frozen=True, slots=True)
class Run:
    """The run of this `number` in a folder, which counts once it has begun to write."""

    results: Results
    number: int

    @property
    def _path(self) -> str:
        return f"{_FOLDER}/{self.number}"

    def list_left(self, rows: DataFrame) -> DataFrame:
        """Keep what this run leaves, if it begins."""
        return self.results.write_table(f"{self._path}/{_LEFT}", rows)

    def begin(self, ranges: Sequence[OffsetRange], groups: dict[str, str]) -> None:
        """From here on it may have written something. `groups` tell topics of one name apart."""
        places = [[groups[r.of.topic], r.of.topic, r.of.partition, r.start] for r in ranges]
        self.results.write_text(f"{self._path}/{_BEGUN}", json.dumps(places) + "\n")

    def left_before(self, ranges: Sequence[OffsetRange], groups: dict[str, str]) -> DataFrame | None:
        """What earlier runs have left of the topics of this one, which begins at these ranges; None: there is none."""
        parts = []
        ends = {(groups[r.of.topic], r.of.partition): r.start for r in ranges}
        for number in reversed(range(self.number)):
            begun = json.loads(self.results.read_text(f"{_FOLDER}/{number}/{_BEGUN}"))
            its = {(group, partition): (topic, start) for group, topic, partition, start in begun}
            bounds = [(its[key][0], key[1], end) for key, end in ends.items() if key in its]
            if bounds:
                rows = self.results.read_table(f"{_FOLDER}/{number}/{_LEFT}")
                known = rows.sparkSession.createDataFrame(bounds, "topic string, partition int, end bigint")
                parts.append(rows.join(known, ["topic", "partition"]).where("offset < end").drop("end"))
            ends |= {key: start for key, (_, start) in its.items() if key in ends}
        return reduce(DataFrame.unionByName, parts) if parts else None


def next_run(results: Results) -> Run:
    """The first whose number no earlier one has begun with."""
    number = 0
    while results.has(f"{_FOLDER}/{number}/{_BEGUN}"):
        number += 1
    return Run(results, number)
