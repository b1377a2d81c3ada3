"""Functions of a user's own that correct dead letters, as `--by tests.pipeline.corrections:…` names them."""

import json
from dataclasses import replace

from sluicegate.pipeline.jobs.replay import DeadLetter, ReplayRecord


def add_missing_tenant(letter: DeadLetter) -> ReplayRecord | None:
    """Adds a tenant where it is missing; leaves values that are not JSON."""
    record = letter.record
    try:
        value = json.loads(record.value or b"")
    except ValueError:
        return None
    return replace(record, value=json.dumps({"tenant": "a", **value}).encode())


def shortens(letter: DeadLetter) -> ReplayRecord | None:
    """Values of any length, and nothing else."""
    return replace(letter.record, value=(letter.record.value or b"")[:4])


def raise_for_one_record(letter: DeadLetter) -> ReplayRecord | None:
    """Over one of them."""
    if letter.record.value == b"secret 7":
        raise KeyError("secret")
    return replace(letter.record, timestamp=letter.record.timestamp // 1_000_000)


def gives_text(letter: DeadLetter) -> str:
    """Which is no record."""
    return letter.topic


def return_invalid_header_name(letter: DeadLetter) -> ReplayRecord:
    """A header by a lone surrogate."""
    return replace(letter.record, headers=(("\ud800", b"1"),))
