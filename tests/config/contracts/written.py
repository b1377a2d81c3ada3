"""Writes contracts, and configurations that name them."""

from pathlib import Path

import pytest

from sluicegate.config.loading import ConfigError, Loaded, load_file
from tests.config.reading import SMALLEST

ORDERS = """apiVersion: v3.1.0
kind: DataContract
id: orders
version: 1.2.0
status: active
team: {name: orders-team}
support: [{channel: "#orders", url: "https://chat.example.com/orders"}]
servers: [{server: live, type: kafka, host: "kafka:9092", format: json}]
schema:
  - name: Orders
    physicalName: orders.v1
    properties:
      - {name: id, logicalType: string, required: true, unique: true}
      - {name: amount, logicalType: number, required: true, logicalTypeOptions: {minimum: 0}}
      - name: currency
        logicalType: string
        quality:
          - {id: known-currency, metric: invalidValues, mustBe: 0, arguments: {validValues: [EUR, USD]}}
          - {id: some-currency, metric: nullValues, mustBeLessThan: 50, unit: percent}
    quality:
      - {id: enough, metric: rowCount, mustBeGreaterThan: 1}
      - {type: sql, query: "select 1", mustBe: 1}
slaProperties:
  - {property: latency, value: 4, unit: d}
  - {property: availability, value: 99}
"""


def contract_with_fields(properties: str, more: str = "") -> str:
    """Return a contract of the topic `t` with these properties, and more keys of its schema."""
    head, _, _ = ORDERS.partition("schema:")
    return f"{head}schema:\n  - name: t\n    properties: {properties}\n    {more}\n"


def load_texts(folder: Path, text: str, **files: str) -> Loaded:
    """Write and load a configuration. `files`: the content of further files by name without suffix; `x_odcs` is a
    contract."""
    for stem, content in {"sluicegate": SMALLEST + text, **files}.items():
        (folder / f"{stem.replace('_odcs', '.odcs')}.yaml").write_text(content)
    return load_file(folder / "sluicegate.yaml", {})


def problems_of_texts(folder: Path, text: str, **files: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_texts(folder, text, **files)
    return [str(problem).replace(str(folder), "F") for problem in caught.value.problems]
