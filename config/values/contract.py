"""What a contract gives a topic: rules, an owner, checks of stored records, and what nothing checks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path as FilePath
from typing import Any

Path = tuple[str | int, ...]


class Metric(StrEnum):
    """What is counted or measured over the stored records of a topic."""

    ROWS = "rowCount"
    NULLS = "nullValues"
    MISSING = "missingValues"
    INVALID = "invalidValues"
    DUPLICATES = "duplicateValues"
    FRESHNESS = "freshness"


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """A check over all stored records of a topic.

    `fields`: paths of names in a value, as JSON. `values` and `pattern`: the missing values, or the valid ones.
    `operator` and `limit`: as in the contract (`mustBeLessThan`, 5). `percent`: the limit is a share of the records.
    The limit of a freshness is in milliseconds.
    """

    name: str
    metric: Metric
    operator: str
    limit: tuple[float, ...]
    place: str
    fields: tuple[tuple[str, ...], ...] = ()
    values: tuple[Any, ...] | None = None
    pattern: str | None = None
    percent: bool = False

    def __str__(self) -> str:
        limit = " and ".join(f"{number:.15g}" for number in self.limit)
        unit = " ms" if self.metric is Metric.FRESHNESS else "%" if self.percent else ""
        about = ", ".join(".".join(field) for field in self.fields)
        return f"{self.name}: {self.metric.value}{f' of {about}' if about else ''} {self.operator} {limit}{unit}"


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A statement of the contract that neither the proxy nor an audit checks, and why."""

    what: str
    why: str
    place: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True, slots=True)
class ContractRule:
    """A rule as a configuration has it, and the path and the place in the contract that it comes from."""

    keys: Mapping[str, Any]
    path: Path
    place: str


@dataclass(frozen=True, slots=True)
class TopicContract:
    """The part of a contract that is about one topic.

    `path`: where the contract names the topic. `registry`: the one with the schemas of its records; None: they are
    JSON, or nothing reads them.
    """

    topic: str
    file: FilePath
    version: str
    path: Path
    place: str
    owner: Mapping[str, str] | None
    registry: str | None
    rules: tuple[ContractRule, ...]
    stored: tuple[StoredCheck, ...]
    unchecked: tuple[Unchecked, ...]

    def lines(self) -> Iterator[str]:
        """Yield a line about the contract, and one for each statement that no record can show alone."""
        yield f"contract: {self.file}, version {self.version}"
        yield from (f"  checked by sluicegate-spark audit: {check}  ({check.place})" for check in self.stored)
        yield from (f"  not checked: {statement}  ({statement.place})" for statement in self.unchecked)
