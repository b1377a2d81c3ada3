"""A sandbox writes reports as lines, GitHub Actions annotations, JUnit XML and SARIF."""

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import jsonschema
import pytest

from sluicegate.proxy.sandbox.report_files import junit, sarif
from sluicegate.proxy.sandbox.report_lines import annotations_of, lines_of
from sluicegate.proxy.sandbox.violations import ViolationList, allowance_of
from tests.proxy.reporting.events.test_violation_writer import one_violation

HOSTILE = "a\x1b[2J\n::error::b%0A,:"
# The properties that GitHub's code scanning requires for a rule (GH2012 of Microsoft's validator, sarif-multitool 5.7).
RULE = {"required": ["id", "shortDescription", "fullDescription", "help"]}
# The required properties of a SARIF log, run and result (OASIS, SARIF 2.1.0, sections 3.13, 3.14 and 3.27).
SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "required": ["tool"],
                "properties": {
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {"required": ["name"], "properties": {"rules": {"type": "array", "items": RULE}}}
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "required": ["message"],
                            "properties": {
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": {"required": ["text"]},
                                "occurrenceCount": {"type": "integer", "minimum": 1},
                            },
                        },
                    },
                },
            },
        },
    },
}


@pytest.fixture
def violations() -> ViolationList:
    """Return two rejected batches of one client, one of a hostile client, and an allowed one."""
    found = ViolationList([allowance_of("allowed=timestamp_in_future")])
    for client, topic in (("checkout", "payments"), ("checkout", "payments"), (HOSTILE, "t"), ("c", "allowed")):
        found.write(one_violation(client_id=client, topic=topic))
    return found


def test_report_lines_show_client_record_reason_and_fix(violations: ViolationList) -> None:
    lines = list(lines_of(violations, accepted_records=7))

    assert lines[0] == "payments: timestamp_in_future (rejected: 2 batches, 2 bad records)"
    assert lines[1] == "  client   checkout"
    assert lines[2].startswith("  record   0 of a batch for partition 0, timestamp 1800000000000000000: ")
    assert lines[2].endswith("looks like nanoseconds: as milliseconds it is 0.0 s ago")
    assert lines[3] == "  error    INVALID_TIMESTAMP: message"
    assert any(line.startswith("  fix      Correct the unit or the clock of the producer") for line in lines)
    assert "allowed: timestamp_in_future (allowed: 1 batch, 1 bad record)" in lines
    assert lines[-1] == (
        "sluicegate sandbox: 7 records accepted, 3 violations failed the run, 1 violation was allowed or only observed"
    )


def test_run_without_violations_is_reported_in_one_line() -> None:
    (line,) = lines_of(ViolationList(), accepted_records=1)
    assert line == "sluicegate sandbox: 1 record accepted, no violation failed the run"


def test_github_annotations_are_one_escaped_line_per_failing_group(violations: ViolationList) -> None:
    annotations = list(annotations_of(violations))

    assert len(annotations) == 2
    for annotation in annotations:
        head, _, message = annotation.removeprefix("::error title=").partition("::")
        assert not {":", ",", "\n", "\r"} & set(head)
        assert not {"\n", "\r"} & set(message)
        assert "%0Afix " in message
    assert "::error::b%250A" in annotations[1]


def test_junit_has_one_failure_per_failing_group(violations: ViolationList) -> None:
    root = Xml.fromstring(junit(violations))

    (suite,) = root
    assert (root.tag, suite.attrib["tests"], suite.attrib["failures"]) == ("testsuites", "3", "2")
    assert suite[0].attrib["name"] == "payments: timestamp_in_future from checkout"
    assert [case.find("failure") is not None for case in suite] == [True, True, False]
    failure = suite[0].find("failure")
    assert failure is not None and failure.text is not None
    assert failure.attrib["type"] == "timestamp_in_future"
    assert "looks like nanoseconds" in failure.text


def test_junit_without_violations_has_one_passed_case() -> None:
    (suite,) = Xml.fromstring(junit(ViolationList()))
    assert (suite.attrib["tests"], suite.attrib["failures"], len(suite)) == ("1", "0", 1)


def test_sarif_results_are_located_at_the_violated_policy(violations: ViolationList, tmp_path: Path) -> None:
    log = json.loads(sarif(violations, tmp_path / "sluicegate.yaml"))

    jsonschema.validate(log, SARIF)
    (run,) = log["runs"]
    assert [result["level"] for result in run["results"]] == ["error", "error", "note"]
    assert {result["ruleId"] for result in run["results"]} == {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    location = run["results"][0]["locations"][0]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == (tmp_path / "sluicegate.yaml").as_uri()
    assert location["logicalLocations"][0]["name"] == "payments"
    assert run["results"][0]["occurrenceCount"] == 2
