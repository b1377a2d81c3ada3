"""Writes violation events as the proxy writes them."""

import json
from pathlib import Path
from typing import Any


def violation_event_row(number: int, minute: int, client: str = "billing", **more: Any) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "time": f"2026-11-21T10:{minute:02d}:00.000Z",
        "client_id": client,
        "topic": "orders",
        "partition": number % 3,
        "outcome": "rejected",
        "code": 32,
        "error": "INVALID_TIMESTAMP",
        "reason": "timestamp_in_future",
        "message": f"number {number}",
        "records": 10,
        "bad_records": 2,
        "samples": [{"index": 1, "timestamp": 5, "reason": "timestamp_in_future"}],
        **more,
    }


def ship_events(folder: Path, files: int, a_file: int) -> int:
    """Write files of events, each in one step."""
    folder.mkdir(exist_ok=True)
    for number in range(files):
        events = [violation_event_row(number * a_file + i, number % 60, f"client-{i % 4}") for i in range(a_file)]
        (folder / f"{number:04d}.jsonl").write_text("".join(json.dumps(e) + "\n" for e in events))
    return files * a_file
