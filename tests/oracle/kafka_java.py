"""Provides the Kafka releases for the tests, from Maven."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KAFKA_NEW, KAFKA_OLD = os.environ.get("SLUICEGATE_KAFKA", "4.3.1"), "3.9.1"
KAFKA_NEWEST = "4.4.0"
"""The release whose messages the proxy supports. Most tests use a broker of `KAFKA_NEW`, which `make kafkas` sets."""
CONFIG_COMMAND = "kafka.admin.ConfigCommand" if KAFKA_NEW < "4.4" else "org.apache.kafka.tools.ConfigCommand"
"""The class of kafka-configs.sh in `KAFKA_NEW`."""


def kafka_folder(version: str) -> Path:
    """Return the folder of a Kafka release's jars, installed by `make kafka`."""
    folder = ROOT / ".kafka" / version
    if not (folder / ".complete").exists():
        message = f"Kafka {version} is not installed: run `make kafka` (requires Java 17 and Maven)"
        if os.environ.get("SLUICEGATE_REQUIRE_BROKER"):
            pytest.fail(message)
        pytest.skip(message)
    return folder
