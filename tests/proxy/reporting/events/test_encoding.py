"""Violation events are written as JSON and as CloudEvents (with the required attributes of the specification, version
1.0)."""

import json
from datetime import datetime
from pathlib import Path

from sluicegate.proxy.reporting.events.encoding import ENCODINGS
from sluicegate.proxy.reporting.events.violation_event import event_of
from sluicegate.proxy.watching.topic_violations import read_files
from sluicegate.proxy.watching.violation_counts import EventSelection, ViolationCounts
from sluicegate.validation.event_schema import event_in
from tests.proxy.live.events import rejected_event


def test_json_encoding_equals_the_event() -> None:
    event = rejected_event()

    assert json.loads(ENCODINGS["json"](event)) == event_of(event)


def test_a_cloud_event_has_the_required_attributes_and_the_event_as_data() -> None:
    event = rejected_event(topic="payments")

    cloud_event = json.loads(ENCODINGS["cloudevents"](event))

    data = cloud_event.pop("data")
    assert data == event_of(event)
    assert datetime.fromisoformat(cloud_event["time"]).tzinfo is not None
    assert cloud_event == {
        "specversion": "1.0",
        "id": event.origin.id,
        "source": "//proxy:9092",
        "type": "sluicegate.violation.v1",
        "time": data["time"],
        "subject": "payments",
        "datacontenttype": "application/json",
    }


def test_a_cloud_event_of_an_unknown_topic_has_no_subject() -> None:
    assert "subject" not in json.loads(ENCODINGS["cloudevents"](rejected_event(topic=None)))


def test_event_is_extracted_from_json_and_cloudevents() -> None:
    event = rejected_event()

    assert [event_in(json.loads(encode(event))) for encode in ENCODINGS.values()] == [event_of(event)] * 2
    assert "\n" not in ENCODINGS["cloudevents"](event).decode()


def test_topic_violations_are_read_from_both_event_formats(tmp_path: Path) -> None:
    file = tmp_path / "violations.jsonl"
    file.write_bytes(b"".join(encode(rejected_event()) + b"\n" for encode in ENCODINGS.values()))

    reading = ViolationCounts(EventSelection("payments"))
    read_files(reading, [file])

    assert [group["batches"] for group in reading.groups()] == [2]
    assert reading.skipped == 0
