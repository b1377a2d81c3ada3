"""The published JSON Schema, the documented fields, Spark's columns and the proxy's events agree."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sluicegate.proxy.reporting.events.schema_reference import schema_text
from sluicegate.proxy.reporting.events.violation_event import Event, event_of
from sluicegate.validation.event_schema import EVENT_FIELDS
from tests.proxy.live.events import rejected_event
from tests.proxy.reporting.events.test_violation_writer import REHEARSAL
from tests.wire.published_schema import schema_mismatches

DOCS = Path(__file__).parents[4] / "docs"


def test_the_published_schema_is_generated_from_the_fields() -> None:
    written = "python -m sluicegate.proxy.reporting.events.schema_reference > docs/violation-event.schema.json"

    assert (DOCS / "violation-event.schema.json").read_text() == schema_text(), f"regenerate the file: {written}"
    Draft202012Validator.check_schema(json.loads(schema_text()))


@pytest.mark.parametrize("event", [rejected_event(), REHEARSAL], ids=["violation", "rehearsal"])
def test_events_match_the_published_schema(event: Event) -> None:
    assert schema_mismatches(event_of(event)) == []


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"partition": "0"}, "'0' is not of type 'integer'"),
        ({"bound": {"key": "k"}}, "'value' is a required property"),
        ({"further": 1}, "'further' was unexpected"),
    ],
)
def test_schema_mismatches_reports_invalid_events(changed: dict[str, Any], problem: str) -> None:
    assert problem in "; ".join(schema_mismatches(event_of(rejected_event()) | changed))


def test_violations_page_describes_every_event_field() -> None:
    table = (DOCS / "violations.md").read_text().partition("## The event")[2].partition("Each item of `samples`")[0]
    described = [
        name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]

    assert sorted(described) == sorted(field.name for field in EVENT_FIELDS)


def test_events_have_unique_ids() -> None:
    first, second = rejected_event(), rejected_event()

    assert event_of(first)["id"] != event_of(second)["id"]
