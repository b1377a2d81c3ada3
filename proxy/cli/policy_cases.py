"""The format of files with test cases of policies (`sluicegate test`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from sluicegate.config.files.patterns import TEST_ENDINGS
from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import FileName, Flag, NoneOrMore, Pattern, Text, TopicName
from sluicegate.protocol.errors import ErrorCode

Outcome = Literal["accepted", "rejected", "quarantined", "observed", "copied", "marked", "fixed", "unvalidated"]


@section
class CaseRecord:
    """A record. A key or value that is not given is null."""

    key: str | None = described("key, as text", default=None)
    value: str | None = described("value, as text", default=None)
    value_file: FileName | None = described("file with the value, relative to the file of the case", default=None)
    headers: dict[Text, str] = described("headers by name, in this order", default_factory=dict)
    timestamp: Text = described("milliseconds, 2026-11-22T10:00:00Z, now, now+1h or now-7d", default="now")

    def __post_init__(self) -> None:
        if self.value is not None and self.value_file is not None:
            raise ValueError("value and value_file cannot be combined")


@section
class Producer:
    """The client that sends the records, and how it sends them."""

    client_id: Text | None = described("client id", default=None)
    principal: Text | None = described("principal, such as `User:payments`. Default: unknown.", default=None)
    software_name: Text | None = described("name of the client library, such as `librdkafka`", default=None)
    software_version: Text | None = described("its version", default=None)
    acks: Literal["all", "1", "0"] = described("`acks` of the request", default="all")
    codec: Literal["none", "gzip", "snappy", "lz4", "zstd"] = described("compression of the batch", default="none")
    idempotent: Flag = described("whether the producer is idempotent", default=True)


@section
class Expected:
    """The expected outcome. Keys that are not given are not compared."""

    outcome: Outcome = described("outcome of the batch")
    rules: tuple[Text, ...] | None = described("names of the violated rules, in any order", default=None)
    error: Text | None = described("name of the error code, such as `INVALID_TIMESTAMP`", default=None)
    message: Pattern | None = described("pattern that a message must match", default=None)
    records: tuple[NoneOrMore, ...] | None = described("positions of the bad records, from 0", default=None)

    def __post_init__(self) -> None:
        if self.error is not None and self.error not in ErrorCode.__members__:
            raise ValueError(f"expected the name of an error code, such as INVALID_RECORD; found {self.error}")


@section
class PolicyCase:
    """One test case, with records that a client sends to a topic in one batch, and the expected outcome."""

    name: Text = described("name of the case")
    topic: TopicName = described("topic of the records")
    records: tuple[CaseRecord, ...] = described("the records of the batch, in order")
    expect: Expected = described("the expected outcome")
    producer: Producer = described("the client", default=Producer())
    now: Text | None = described("the proxy's clock; none: that of the file", default=None)

    def __post_init__(self) -> None:
        if not self.records:
            raise ValueError("records: expected at least one record, such as [{key: k, value: v}]")


@section
class CaseFile:
    """A file of test cases."""

    config: FileName | None = described("configuration, relative to this file; none: the option --config", default=None)
    now: Text | None = described("the proxy's clock; none: the time of the run", default=None)
    cases: tuple[PolicyCase, ...] = described("the cases")


def case_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files of test cases.

    These are the given files, and the files in the given folders, sorted by name.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            names = (each for end in TEST_ENDINGS for each in path.rglob(f"*{end}"))
            found |= dict.fromkeys(sorted(each for each in names if each.is_file()))
        else:
            found[path] = None
    return list(found)
