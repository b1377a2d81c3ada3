"""How far a watch has come: after each batch a file that says so. What it says is done; what it does not say is done
again, in place of what a run that was killed has left of it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any

from sluicegate.pipeline.errors import PipelineError
from sluicegate.pipeline.jobs.watch.chunks import Place
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.results import Results

_FOLDER, _BEGUN, _TOLD = "progress", "watch.json", "told.json"
_KEPT = 3


class OtherWatch(PipelineError):
    """The folder is that of a watch with other tables, or another process goes on with it; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Progress:
    """After batch `number`, or before the first one (-1). `producers` are rows of what is known of them, `owed` the
    findings that the webhook has not been told yet, `recent` the last ones of all, `topics` what each adds up to.
    `ids`: the topics' own, by name: places and producers are those of these topics.
    """

    number: int = -1
    places: Mapping[TopicPartition, Place] = field(default_factory=dict)
    producers: list[list[Any]] = field(default_factory=list)
    owed: list[dict[str, Any]] = field(default_factory=list)
    recent: list[dict[str, Any]] = field(default_factory=list)
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def of_topics(self, ids: Mapping[str, str]) -> "Progress":
        """The same without places and producers of topics that have another id now; "" is none."""
        others = {name for name, its in ids.items() if its and self.ids.get(name, its) != its}
        return replace(
            self,
            places={of: place for of, place in self.places.items() if of.topic not in others},
            producers=[row for row in self.producers if row[0] not in others],
            ids=self.ids | {name: its for name, its in ids.items() if its},
        )

    def keep(self, results: Results) -> None:
        """From here a run that is started again goes on. Raises OtherWatch."""
        name = _file(self.number)
        if results.has(name):
            raise OtherWatch(
                f"{results.path(name)} is there already: another watch writes to this folder. Stop one of the two, and "
                "start the other again"
            )
        told = {
            "places": [[of.topic, of.partition, at.offset, at.after_ms] for of, at in sorted(self.places.items())],
            "producers": self.producers,
            "owed": self.owed,
            "recent": self.recent,
            "topics": self.topics,
            "ids": self.ids,
        }
        results.write_text(name, json.dumps(told) + "\n")
        results.remove(_file(self.number - _KEPT))


def progress_in(results: Results) -> Progress:
    """Where an earlier run has ended."""
    numbers = [int(name.removesuffix(".json")) for name in results.names_in(_FOLDER) if name.endswith(".json")]
    if not numbers:
        return Progress()
    number = max(numbers)
    told: dict[str, Any] = json.loads(results.read_text(_file(number)))
    told["places"] = {TopicPartition(t, p): Place(offset, after) for t, p, offset, after in told["places"]}
    if results.has(_TOLD) and json.loads(results.read_text(_TOLD))["batch"] >= number:
        told["owed"] = []
    return Progress(number, **told)


def note_told(results: Results, number: int) -> None:
    """That the webhook knows all findings up to those of a batch."""
    results.write_text(_TOLD, json.dumps({"batch": number}) + "\n")


def stream_id(results: Results, kept: Mapping[str, str]) -> str:
    """The watch's own id, made when its folder is first used. `kept`: where its tables are, and in which format; they
    stay there. Raises OtherWatch.
    """
    if not results.has(_BEGUN):
        results.write_text(_BEGUN, json.dumps({"id": token_hex(3), **kept}) + "\n")
    begun: dict[str, str] = json.loads(results.read_text(_BEGUN))
    if {name: begun.get(name) for name in kept} != dict(kept):
        raise OtherWatch(
            f"{results.path('')} is that of a watch whose tables are in {begun.get('tables')} as "
            f"{begun.get('format')}: go on with these, or use another --out"
        )
    return begun["id"]


def _file(number: int) -> str:
    return f"{_FOLDER}/{number}.json"
