"""Contains functions that correct dead letters, as a user writes them, for `--by tests.pipeline.corrections:NAME`."""

import json
from dataclasses import replace

from sluicegate.pipeline.jobs.replay import DeadLetter, ReplayRecord


def add_missing_tenant(letter: DeadLetter) -> ReplayRecord | None:
    """Add a tenant if it is missing; leave values that are not JSON unchanged."""
    record = letter.record
    try:
        value = json.loads(record.value or b"")
    except ValueError:
        return None
    return replace(record, value=json.dumps({"tenant": "a", **value}).encode())


def shorten_value(letter: DeadLetter) -> ReplayRecord | None:
    """Shorten the value to four bytes, and correct nothing else."""
    return replace(letter.record, value=(letter.record.value or b"")[:4])


def raise_for_one_record(letter: DeadLetter) -> ReplayRecord | None:
    """Raise KeyError for one record, and correct the timestamp of all others."""
    if letter.record.value == b"secret 7":
        raise KeyError("secret")
    return replace(letter.record, timestamp=letter.record.timestamp // 1_000_000)


def gives_text(letter: DeadLetter) -> str:
    """Return a text, which is not a valid record."""
    return letter.topic


def return_invalid_header_name(letter: DeadLetter) -> ReplayRecord:
    """Return a record with a header name that is a lone surrogate."""
    return replace(letter.record, headers=(("\ud800", b"1"),))
