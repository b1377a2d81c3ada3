"""Runs a broker whose authorizer prints the principal of each decision."""

from pathlib import Path
from typing import Final

from tests.broker.kafka import Kafka

AUTHORIZER: Final = "PrintingAuthorizer"
"""The authorizer's class name."""
PROGRAM: Final = str(Path(__file__).with_name(f"{AUTHORIZER}.java"))
"""The program that runs such a broker."""


def writers_of(kafka: Kafka, topic: str) -> set[str]:
    """Return the principals that the broker has allowed or denied to write to a topic."""
    log = (kafka.folder / f"node-{kafka.nodes[0].node_id}.log").read_text(errors="replace")
    decisions = (line.split("\t") for line in log.splitlines() if line.startswith("authorized\t"))
    return {principal for _, principal, operation, name, _ in decisions if (operation, name) == ("WRITE", topic)}
