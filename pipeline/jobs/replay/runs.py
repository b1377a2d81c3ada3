"""What earlier runs in a folder have done and left where it is, for a list that is whole after a run that was killed.

Each run lists what it finds in `runs/N`, notes there where it began just before it writes, and where it ended. It has
done what lies before the beginning of the next, so what it listed from there on is listed again. A broker forgets a
group's offsets after a while (`offsets.retention.minutes`); what ended is known from here then.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame

from sluicegate.pipeline.kafka.cluster import OffsetRange
from sluicegate.pipeline.results import Results

_FOLDER = "runs"
_BEGUN = "begun.json"
_ENDED = "ended.json"
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

    def end(self, ranges: Sequence[OffsetRange], groups: dict[str, str]) -> None:
        """All of them are done."""
        places = [[groups[r.of.topic], r.of.partition, r.end] for r in ranges]
        self.results.write_text(f"{self._path}/{_ENDED}", json.dumps(places) + "\n")

    def not_done(self, ranges: Sequence[OffsetRange], groups: dict[str, str]) -> list[OffsetRange]:
        """The ranges without what earlier runs in this folder have ended with, if a broker has forgotten that."""
        ends: dict[tuple[str, int], int] = {}
        for number in range(self.number):
            note = f"{_FOLDER}/{number}/{_ENDED}"
            for group, partition, end in json.loads(self.results.read_text(note)) if self.results.has(note) else ():
                ends[group, partition] = max(end, ends.get((group, partition), 0))
        reached = [ends.get((groups[r.of.topic], r.of.partition), 0) for r in ranges]
        return [replace(r, start=max(r.start, min(r.end, end))) for r, end in zip(ranges, reached, strict=True)]

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
