"""The fields of log lines about validations; computed only when a line is due."""

from typing import Any

from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.events.violation_event import ClientDetails, client_details
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.validation.timestamps import RehearsedBound
from sluicegate.validation.units import diagnose
from sluicegate.validation.verdict import FRAMED, TIMED, Rejected


def rejection(
    client: ClientDetails, topic: str | None, partition: int, rejected: Rejected, now_ms: int
) -> dict[str, Any]:
    """Return the fields of a violation: where it was, and why."""
    details: dict[str, Any] = {
        **_place(client, topic, partition),
        "error": rejected.code.name,
        "reason": rejected.reason.value,
    }
    if rejected.rules:
        details["rule"] = cut(rejected.rules[0][0])
    if rejected.bad_records:
        first = rejected.bad_records[0]
        details |= {"record": first.index, "record_timestamp": first.timestamp}
        if first.reason in TIMED:
            details["diagnosis"] = diagnose(first.timestamp, now_ms)
        elif first.rules:
            details["diagnosis"] = cut(first.message)
        if first.fixed is not None:
            details["fixed_timestamp"] = first.fixed
    elif rejected.rules or rejected.reason in FRAMED:
        details["diagnosis"] = None if rejected.message is None else cut(rejected.message)
    return details


def not_kept(client: ClientDetails, topic: str, letters: DeadLetters, reason: str) -> dict[str, Any]:
    """Return the fields of a failed quarantine write."""
    return {
        **_place(client, topic, letters.partition),
        "dead_letter_topic": letters.topic,
        "reason": reason,
    }


def rehearsal(client: ClientDetails, topic: str | None, partition: int, bound: RehearsedBound) -> dict[str, Any]:
    """Return the fields of a violated rehearsed bound."""
    return {
        **_place(client, topic, partition),
        "bound": bound.key,
        "max_ms": bound.max_ms,
    }


def far_ahead(identity: ClientIdentity, topic: str | None, ahead_ms: int) -> dict[str, Any]:
    """Return the fields of an accepted batch with timestamps `ahead_ms` ahead."""
    client = client_details(identity)
    return {
        "client_id": client.client_id,
        "software": _software(client),
        "peer": client.peer,
        "topic": topic,
        "ahead_ms": ahead_ms,
    }


def _place(client: ClientDetails, topic: str | None, partition: int) -> dict[str, Any]:
    return {
        "client_id": client.client_id,
        "software": _software(client),
        "principal": client.principal,
        "peer": client.peer,
        "topic": topic,
        "partition": partition,
    }


def _software(client: ClientDetails) -> str | None:
    return None if client.software_name is None else f"{client.software_name} {client.software_version}"
