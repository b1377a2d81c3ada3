"""Stores the progress of a watch in a file after each batch.

A restarted watch repeats the batches after the stored one, and replaces the results of a killed run.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from secrets import token_hex
from typing import Any

from sluicegate.pipeline.jobs.watch.reading import WatchedOffset
from sluicegate.pipeline.kafka.cluster import TopicPartition
from sluicegate.pipeline.runs.errors import EarlierBuild, PipelineError
from sluicegate.pipeline.runs.results import Results

_FOLDER, _BEGUN, _SENT = "progress", "watch.json", "sent.json"
_KEPT = 3


class DifferentWatch(PipelineError):
    """Raised if the folder belongs to a watch with other tables, or is in use. The message gives a fix."""


@dataclass(frozen=True, slots=True)
class WatchProgress:
    """The progress after batch `number`, which is -1 before the first batch.

    - `producers`: rows with the producers' state.
    - `owed`: findings that have not yet been sent to the webhook.
    - `recent`: the latest findings.
    - `topics`: sums by topic.
    - `ids`: the ids, by name, of the topics to which places and producers belong.
    """

    number: int = -1
    places: Mapping[TopicPartition, WatchedOffset] = field(default_factory=dict)
    producers: list[list[Any]] = field(default_factory=list)
    owed: list[dict[str, Any]] = field(default_factory=list)
    recent: list[dict[str, Any]] = field(default_factory=list)
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def of_topics(self, ids: Mapping[str, str]) -> "WatchProgress":
        """Return the progress without the places and producers of topics with another id. An id of "" is unknown."""
        others = {name for name, its in ids.items() if its and self.ids.get(name, its) != its}
        return replace(
            self,
            places={of: place for of, place in self.places.items() if of.topic not in others},
            producers=[row for row in self.producers if row[0] not in others],
            ids=self.ids | {name: its for name, its in ids.items() if its},
        )

    def keep(self, results: Results) -> None:
        """Write the progress, from which a restarted run continues. Raises DifferentWatch."""
        name = _file(self.number)
        if results.has(name):
            raise DifferentWatch(
                f"{results.path(name)} exists already: another watch writes to this folder. Stop one of the two and "
                "restart the other"
            )
        content = {
            "places": [[of.topic, of.partition, at.offset, at.after_ms] for of, at in sorted(self.places.items())],
            "producers": self.producers,
            "owed": self.owed,
            "recent": self.recent,
            "topics": self.topics,
            "ids": self.ids,
        }
        results.write_text(name, json.dumps(content) + "\n")
        results.remove(_file(self.number - _KEPT))


def progress_in(results: Results) -> WatchProgress:
    """Return the progress of an earlier run. Raises EarlierBuild."""
    numbers = [int(name.removesuffix(".json")) for name in results.names_in(_FOLDER) if name.endswith(".json")]
    if not numbers:
        return WatchProgress()
    number = max(numbers)
    content: dict[str, Any] = json.loads(results.read_text(_file(number)))
    if any("missing" not in topic for topic in content["topics"].values()):
        raise EarlierBuild(results.path(_file(number)))
    content["places"] = {
        TopicPartition(t, p): WatchedOffset(offset, after) for t, p, offset, after in content["places"]
    }
    if results.has(_SENT) and json.loads(results.read_text(_SENT))["batch"] >= number:
        content["owed"] = []
    return WatchProgress(number, **content)


def note_sent(results: Results, number: int) -> None:
    """Note that the webhook has received all findings up to a batch."""
    results.write_text(_SENT, json.dumps({"batch": number}) + "\n")


def stream_id(results: Results, kept: Mapping[str, str]) -> str:
    """Return the watch's id, which is created when its folder is first used. Raises DifferentWatch.

    `kept` contains the location and the format of the watch's tables, which must not change.
    """
    if not results.has(_BEGUN):
        results.write_text(_BEGUN, json.dumps({"id": token_hex(3), **kept}) + "\n")
    begun: dict[str, str] = json.loads(results.read_text(_BEGUN))
    if {name: begun.get(name) for name in kept} != dict(kept):
        raise DifferentWatch(
            f"{results.path('')} contains the results of a watch with tables in {begun.get('tables')} as "
            f"{begun.get('format')}: use the same again, or another --out"
        )
    return begun["id"]


def _file(number: int) -> str:
    return f"{_FOLDER}/{number}.json"
