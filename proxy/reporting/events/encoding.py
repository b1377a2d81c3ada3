"""Encodes violation events as JSON, or in the JSON format of CloudEvents 1.0 (`violations.format`)."""

import json
from collections.abc import Callable
from typing import Any, Final, Literal

from sluicegate.proxy.reporting.events.violation_event import Event, event_of

CLOUD_EVENT_CONTENT_TYPE: Final = "application/cloudevents+json; charset=UTF-8"
"""The `content-type` header of a record in structured mode (Kafka protocol binding of CloudEvents)."""
_TYPE = "sluicegate.violation.v1"

Encode = Callable[[Event], bytes]
"""Encodes an event as one line without a line end."""


def encode_json(event: Event) -> bytes:
    """Return the event's own JSON object."""
    return json.dumps(event_of(event)).encode()


def encode_cloud_event(event: Event) -> bytes:
    """Encode the event as the data of a CloudEvent, whose `source` and `id` are the event's `proxy` and `id`."""
    return json.dumps(_cloud_event(event_of(event))).encode()


def _cloud_event(data: dict[str, Any]) -> dict[str, Any]:
    attributes = {
        "specversion": "1.0",
        "id": data["id"],
        "source": f"//{data['proxy']}",
        "type": _TYPE,
        "time": data["time"],
        "datacontenttype": "application/json",
        "data": data,
    }
    return attributes if data["topic"] is None else attributes | {"subject": data["topic"]}


ENCODINGS: Final[dict[Literal["json", "cloudevents"], Encode]] = {
    "json": encode_json,
    "cloudevents": encode_cloud_event,
}
