"""Writes a sandbox's violations as JUnit XML and as SARIF 2.1.0."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml  # this module only writes XML and never parses it

from sluicegate.config.files.source import printable
from sluicegate.proxy.reporting.build_info import VERSION
from sluicegate.proxy.sandbox.report_lines import details_of
from sluicegate.proxy.sandbox.violations import Violation, ViolationList, grouped

_SUITE = "sluicegate sandbox"
_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def junit(violations: ViolationList) -> bytes:
    """Return a JUnit XML file with a test case for each client, topic and code.

    Violations that fail the run are failed test cases. A run without violations has one passed test case.
    """
    groups = list(grouped(violations.listed()))
    failures = sum(group[0].fails for group in groups)
    counts = {"tests": str(len(groups) or 1), "failures": str(failures), "errors": "0"}
    root = Xml.Element("testsuites", counts)
    suite = Xml.SubElement(root, "testsuite", {"name": _SUITE, **counts})
    for group in groups:
        event = group[0].event
        name = f"{event['topic']}: {group[0].code} from {event['client_id'] or '(no client id)'}"
        case = Xml.SubElement(suite, "testcase", {"classname": _SUITE, "name": printable(name)})
        text = "\n".join(map(printable, details_of(group)))
        if group[0].fails:
            message = printable(f"{len(group)} rejected: {event['message'] or event['reason_text']}")
            Xml.SubElement(case, "failure", {"message": message, "type": group[0].code}).text = text
        else:
            Xml.SubElement(case, "system-out").text = text
    if not groups:
        Xml.SubElement(suite, "testcase", {"classname": _SUITE, "name": "no batch violates a policy"})
    Xml.indent(root)
    written: bytes = Xml.tostring(root, "utf-8", xml_declaration=True)
    return written


def sarif(violations: ViolationList, configuration: Path) -> bytes:
    """Return a SARIF file with a result for each client, topic and code.

    A result's location is the violated policy, or `configuration` if no policy has a place.
    """
    groups = list(grouped(violations.listed()))
    rules = {group[0].code: group[0] for group in groups}
    driver = {
        "name": "sluicegate",
        "version": VERSION,
        "rules": [
            {
                "id": code,
                "shortDescription": {"text": violation.event["reason_text"]},
                "fullDescription": {"text": violation.event["reason_text"]},  # GitHub rejects a rule without it
                "help": {"text": violation.fix},
            }
            for code, violation in rules.items()
        ],
    }
    run = {"tool": {"driver": driver}, "results": [_result(group, configuration) for group in groups]}
    return json.dumps({"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1).encode()


def _result(group: Sequence[Violation], configuration: Path) -> dict[str, Any]:
    first = group[0]
    return {
        "ruleId": first.code,
        "level": "error" if first.fails else "note",
        "message": {"text": "\n".join(map(printable, details_of(group)))},
        "occurrenceCount": len(group),
        "locations": [
            {
                "physicalLocation": _location(first.event["bound"], configuration),
                "logicalLocations": [{"name": first.event["topic"] or "(unknown topic)", "kind": "resource"}],
            }
        ],
    }


def _location(bound: dict[str, Any] | None, configuration: Path) -> dict[str, Any]:
    file, _, line = str((bound or {}).get("place") or "").rpartition(":")
    if not file or not line.isdecimal():
        return {"artifactLocation": {"uri": _uri(configuration)}, "region": {"startLine": 1}}
    return {"artifactLocation": {"uri": _uri(Path(file))}, "region": {"startLine": int(line)}}


def _uri(file: Path) -> str:
    """Return a path relative to the working directory, as code scanning expects it, or an absolute URI."""
    path, here = file.absolute(), Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.as_uri()
