"""Verdicts are those of the official JSON-Schema-Test-Suite (MIT): numbers of any size, formats, and draft 3.

The schemas and values are the suite's own text, because a reader may round their numbers.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.rule import StepBudget

GROUPS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "official_suite.json").read_text())["groups"]
DRAFTS = sorted({group["draft"] for group in GROUPS})
# Schemas that refer to other schemas by URL, which are not fetched.
FETCHED = {
    (group["file"], group["about"])
    for group in GROUPS
    if "localhost:1234" in group["schema"] or '"$ref":"http' in group["schema"]
}


@pytest.mark.parametrize("draft", DRAFTS)
def test_json_schema_verdicts_equal_the_official_suite(draft: str) -> None:
    wrong = []
    for group in GROUPS:
        if group["draft"] == draft and (group["file"], group["about"]) not in FETCHED:
            content = json_schema_content(group["schema"])
            for value, is_valid in group["tests"]:
                if (content.fault(value.encode(), StepBudget()) is None) != is_valid:
                    wrong.append((group["file"], group["about"], value))
    assert wrong == []


def test_vendored_json_schema_suite_is_complete() -> None:
    counts = Counter[str]()
    for group in GROUPS:
        counts["format" if "/format/" in group["file"] else group["file"]] += len(group["tests"])

    assert counts["optional/bignum.json"] == 54
    assert counts["format"] > 1_700
    assert sum(len(group["tests"]) for group in GROUPS if group["draft"] == "draft3") > 500
    assert len(FETCHED) < 10
