"""The Kafka releases that tests run and ask, from Maven."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KAFKA_NEW, KAFKA_OLD = "4.3.1", "3.9.1"


def kafka_folder(version: str) -> Path:
    """The folder of a Kafka release's jars, as `make kafka` brings them."""
    folder = ROOT / ".kafka" / version
    if not (folder / ".complete").exists():
        message = f"Kafka {version} is not here: run `make kafka` (Java 17 and Maven are needed)"
        if os.environ.get("SLUICEGATE_REQUIRE_BROKER"):
            pytest.fail(message)
        pytest.skip(message)
    return folder
