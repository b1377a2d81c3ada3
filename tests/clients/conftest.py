"""Writes docs/compatibility.md at the end of `make clients`."""

import os

import pytest

from tests.clients.table import ROWS, write_page
from tests.oracle.kafka_java import KAFKA_NEW, ROOT


def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("SLUICEGATE_WRITE_CLIENTS") and ROWS:
        write_page(ROOT / "docs" / "compatibility.md", KAFKA_NEW)
