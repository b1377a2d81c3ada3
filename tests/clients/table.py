"""The matrix of docs/clients.md. Written by `make clients`, never by hand."""

from dataclasses import dataclass, field
from pathlib import Path

COLUMNS = ("produce, default", "produce, strict", "consume in a group", "create a topic", "list topics")

HEAD = """# Clients

Written by `make clients`: each client is installed from its registry and used through sluicegate, in front of Kafka
{kafka}. *Strict* is the strictest configuration of a client: all replicas, idempotent, transactional if the client
supports it, compressed with zstd (kafkajs: gzip).

{table}

## Errors after a rejection

Three records in one batch, the second with a timestamp in nanoseconds; kcat cannot set timestamps and sends a record
without a key to a compacted topic. Each client reports the same error, apart from numbers (N), as with a broker that
has the same limits.

librdkafka (confluent-kafka, kcat) reports the batch's code for each of its records if one record is bad. If several are
bad, it reports INVALID_RECORD (`Broker: Broker failed to validate record`) for those, for any code, and
_INVALID_DIFFERENT_RECORD for the others. It does the same with a broker.

{rejections}
"""


@dataclass
class Row:
    """One client; `version` is None if it is not installed, `requirements` names what to install."""

    name: str
    version: str | None
    requirements: str
    done: list[str] = field(default_factory=list)
    rejection: list[str] = field(default_factory=list)

    def passed(self, what: str) -> None:
        assert what in COLUMNS
        self.done.append(what)

    def cells(self) -> list[str]:
        if self.version is None:
            return [self.name, f"not run: requires {self.requirements}", *["" for _ in COLUMNS], ""]
        marks = ["yes" if column in self.done else "**no**" for column in COLUMNS]
        return [self.name, self.version, *marks, "as at a broker" if self.rejection else "**no**"]


ROWS: dict[str, Row] = {}


def page(kafka: str) -> str:
    """docs/clients.md."""
    headings = ["client", "version", *COLUMNS, "rejection"]
    lines = [headings, ["---"] * len(headings), *(row.cells() for row in ROWS.values())]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    rejections = "\n\n".join(
        f"**{row.name}**\n\n```\n{chr(10).join(row.rejection)}\n```" for row in ROWS.values() if row.rejection
    )
    return HEAD.format(kafka=kafka, table=table, rejections=rejections)


def write(file: Path, kafka: str) -> None:
    file.write_text(page(kafka))
