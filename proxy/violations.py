"""Violation events: one JSON object for each refused partition (docs/violations.md), written behind a bounded queue.

The wire never waits for the file: when the queue is full an event is dropped and counted. The file is opened again
when it was moved away (logrotate).
"""

import json
import os
import queue
import threading
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path
from typing import Any, Protocol

import structlog

from proxy.identity import ClientIdentity
from proxy.metrics import Tally
from validation.policy import TopicPolicy
from validation.timestamps import TimeWindow, window_of
from validation.units import diagnose
from validation.verdict import BadRecord, Reason, Refused

EVENT_VERSION = 1
_TIMED = frozenset({Reason.TIMESTAMP_BEFORE, Reason.TIMESTAMP_AFTER})


def violation_event(
    identity: ClientIdentity,
    topic: str | None,
    topic_id: bytes | None,
    partition: int,
    refused: Refused,
    policy: TopicPolicy,
    now_ms: int,
    max_records: int,
) -> dict[str, Any]:
    """The event of one refused partition; at most `max_records` bad records are listed, all are counted."""
    window = window_of(policy, now_ms)
    return {
        "version": EVENT_VERSION,
        "time": datetime.fromtimestamp(now_ms / 1000, UTC).isoformat(timespec="milliseconds"),
        "client_id": identity.client_id,
        "software_name": identity.software_name,
        "software_version": identity.software_version,
        "principal": identity.principal,
        "peer": identity.peer,
        "topic": topic,
        "topic_id": topic_id.hex() if topic_id is not None else None,
        "partition": partition,
        "code": int(refused.code),
        "error": refused.code.name,
        "reason": refused.reason.value,
        "message": refused.message,
        "records": refused.records,
        "bad_records": len(refused.bad_records),
        "samples": [_sample(record, window, now_ms) for record in refused.bad_records[:max_records]],
    }


def _sample(record: BadRecord, window: TimeWindow | None, now_ms: int) -> dict[str, Any]:
    sample: dict[str, Any] = {"index": record.index, "timestamp": record.timestamp, "reason": record.reason.value}
    if record.reason in _TIMED and window is not None:
        sample["earliest"], sample["latest"] = window.earliest, window.latest
        sample["diagnosis"] = diagnose(record.timestamp, now_ms)
    return sample


class ViolationSink(Protocol):
    """Where violation events go. `write` must never wait."""

    def write(self, event: dict[str, Any]) -> None:
        """Take one event."""

    def close(self) -> None:
        """No more events will come; write what is queued."""


class ViolationFile:
    """Appends events to a file from a thread of its own. Raises OSError at once when the file cannot be opened."""

    def __init__(self, path: Path, queue_size: int, tally: Tally) -> None:
        self._path = path
        self._tally = tally
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue(queue_size)
        self._log = structlog.get_logger("sluicegate.violations")
        self._file = _opened(path)
        self._thread = threading.Thread(target=self._run, name="violations", daemon=True)
        self._thread.start()

    def write(self, event: dict[str, Any]) -> None:
        """Queue an event; never waits."""
        try:
            self._queue.put_nowait(event)
        except queue.Full:
            self._tally.violations_dropped += 1

    def close(self) -> None:
        """Write what is queued, then stop."""
        self._queue.put(None)
        self._thread.join()
        self._file.close()

    def _run(self) -> None:
        failing = False
        while (event := self._queue.get()) is not None:
            try:
                self._reopen_if_moved()
                self._file.write(json.dumps(event, ensure_ascii=False).encode() + b"\n")
                failing = False
            except OSError as error:
                self._tally.violations_dropped += 1
                if not failing:
                    self._log.error("violation events cannot be written", file=str(self._path), reason=error.strerror)
                failing = True

    def _reopen_if_moved(self) -> None:
        try:
            same = os.path.samestat(self._path.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            same = False
        if not same:
            new = _opened(self._path)
            self._file.close()
            self._file = new


def _opened(path: Path) -> FileIO:
    """Unbuffered, so that each line is one write and the lines of several workers never mix."""
    return path.open("ab", buffering=0)
