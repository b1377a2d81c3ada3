"""What the matrix found, as docs/clients.md shows it. Written by `make clients`, never by hand."""

from dataclasses import dataclass, field
from pathlib import Path

COLUMNS = ("produce, default", "produce, strict", "consume in a group", "create a topic", "list topics")

HEAD = """# Clients

Written by `make clients`: each client is installed from its registry and driven through sluicegate, in front of Kafka
{kafka}, as its users do. *Strict* is the strictest a client has: all replicas, idempotent and, where it knows them,
transactional, compressed with zstd (kafkajs: gzip).

{table}

## What each says of a rejection

Three records in one batch, the time of the second in nanoseconds; kcat cannot set times and sends a record without a
key to a compacted topic. Each line is the same, but for numbers (N), that the client says to a broker with the same
limits.

librdkafka (confluent-kafka, kcat) says the batch's code for each of its records where one record is bad. Where several
are, it says INVALID_RECORD (`Broker: Broker failed to validate record`) for those, whatever the code was, and
_INVALID_DIFFERENT_RECORD for the others. It does so at a broker too.

{rejections}
"""


@dataclass
class Row:
    """One client; `version` is None when it could not be run here, `needs` says what for."""

    name: str
    version: str | None
    needs: str
    done: list[str] = field(default_factory=list)
    rejection: list[str] = field(default_factory=list)

    def passed(self, what: str) -> None:
        assert what in COLUMNS
        self.done.append(what)

    def cells(self) -> list[str]:
        if self.version is None:
            return [self.name, f"not run: needs {self.needs}", *["" for _ in COLUMNS], ""]
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
