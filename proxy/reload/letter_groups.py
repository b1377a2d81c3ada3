"""Returns groups of dead letters as JSON, with the contents that the original topics' policies allow."""

from typing import Any

from sluicegate.dead_letters.contents import shown_contents
from sluicegate.dead_letters.groups import Group
from sluicegate.proxy.reload.letter_policies import LetterPolicies
from sluicegate.proxy.reporting.events.violation_event import shown_beginning


def group_json(group: Group, policies: LetterPolicies | None) -> dict[str, Any]:
    """Return a group as JSON. Without `policies`, contents are hidden."""
    example = group.example
    return {
        "id": group.id,
        "letters": group.count,
        "error": group.cause.error,
        "rules": list(group.cause.rules),
        "stage": group.cause.stage or None,
        "text": group.cause.exact,
        "first_ms": group.first,
        "last_ms": group.last,
        "formats": dict(group.formats),
        "from_topics": dict(group.topics),
        "clients": dict(group.clients),
        "hours_ms": dict(group.hours),
        "schema_ids": dict(group.schemas),
        "example": {
            "partition": example.record.partition,
            "offset": example.record.offset,
            "from_topic": example.topic,
            "from_partition": example.partition,
            "from_offset": example.offset,
            "from_timestamp_ms": example.timestamp,
            "obstacle": None if example.obstacle is None else example.obstacle.value,
            "contents": contents_json(group, policies),
        },
    }


def contents_json(group: Group, policies: LetterPolicies | None) -> dict[str, Any] | None:
    """Return the beginning of the key and of the value of a group's example, or None if they are hidden."""
    if policies is None:
        return None
    shown = shown_contents(group.example, policies.of(group.example.topic), policies.limits)
    return None if shown is None else {"key": shown_beginning(shown.key), "value": shown_beginning(shown.value)}
