"""Represents what a contract defines for a topic: rules, an owner, checks of stored records, unchecked statements."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path as FilePath
from typing import Any

from sluicegate.config.values.topic_pattern import compile_expression, exact_name_of, regular_expression_of

Path = tuple[str | int, ...]


class Metric(StrEnum):
    """A quantity that is counted or measured over a topic's stored records."""

    ROWS = "rowCount"
    NULLS = "nullValues"
    MISSING = "missingValues"
    INVALID = "invalidValues"
    DUPLICATES = "duplicateValues"
    FRESHNESS = "freshness"


@dataclass(frozen=True, slots=True)
class StoredCheck:
    """A check over all of a topic's stored records.

    `fields` are the paths of properties in a value, as JSON. `values` and `pattern` describe the missing values, or the
    valid ones, depending on the metric. `operator` and `limit` are those of the contract (for example `mustBeLessThan`,
    5). `percent` is whether the limit is a percentage of the records. The limit for freshness is in milliseconds.
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
    """A statement in the contract that neither the proxy nor an audit checks, and why."""

    what: str
    why: str
    place: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True, slots=True)
class ContractRule:
    """A rule in the form of the configuration, with its path and its place in the contract."""

    keys: Mapping[str, Any]
    path: Path
    place: str


@dataclass(frozen=True, slots=True)
class TopicContract:
    """The part of a contract that applies to one topic.

    `topic` is a name, or a regular expression between slashes for a channel with parameters. `path` is the path in the
    contract where it names the topic, and `owner_path` that of the owner. `registry` is the registry with the schemas
    of the topic's records. It is None if the records are JSON, or if the proxy does not read them.
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
    owner_path: Path = ("team",)

    def lines(self) -> Iterator[str]:
        """Yield a line about the contract, and a line for each statement that cannot be checked on a single record."""
        yield f"contract: {self.file}, version {self.version}"
        yield from (f"  checked by sluicegate-spark audit: {check}  ({check.place})" for check in self.stored)
        yield from (f"  not checked: {statement}  ({statement.place})" for statement in self.unchecked)


def contract_of(contracts: Mapping[str, TopicContract], topic: str) -> TopicContract | None:
    """Return a topic's contract: the contract that names it, or else the first contract with a matching pattern."""
    named = contracts.get(topic)
    if named is not None:
        return named
    patterns = ((each, match) for match, each in contracts.items() if exact_name_of(match) is None)
    return next(
        (each for each, match in patterns if compile_expression(regular_expression_of(match)).fullmatch(topic)), None
    )
