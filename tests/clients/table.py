"""Writes the matrix in docs/compatibility.md. `make clients` generates it; do not edit it by hand."""

from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import fill_in

COLUMNS = ("produce, default", "produce, strict", "consume in a group", "create a topic", "list topics")

HEAD = """`make clients` wrote this table: each client is installed from its registry and used through sluicegate, in
front of Kafka {kafka}. *Strict* is the strictest configuration of a client: all replicas, idempotent, transactional if
the client supports it, compressed with zstd (kafkajs: gzip). *As at a broker*: for a rejected batch the client reports
the same error as with a broker that has the same limits.
"""


@dataclass
class ClientRow:
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


ROWS: dict[str, ClientRow] = {}


def write_page(file: Path, kafka: str) -> None:
    """Replace the table of the page."""
    headings = ["client", "version", *COLUMNS, "rejection"]
    lines = [headings, ["---"] * len(headings), *(row.cells() for row in ROWS.values())]
    fill_in(file, "clients", HEAD.format(kafka=kafka) + "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines))
