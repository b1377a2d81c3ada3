"""Verdicts are those of the official JSON-Schema-Test-Suite (MIT): numbers of any size, and formats.

The texts of schemas and values are the suite's own, because a reader may round their numbers.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sluicegate.validation.rules.json.schema import json_schema_content

GROUPS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "official_suite.json").read_text())["groups"]
DRAFTS = sorted({group["draft"] for group in GROUPS})


@pytest.mark.parametrize("draft", DRAFTS)
def test_every_verdict_is_the_suites(draft: str) -> None:
    wrong = []
    for group in GROUPS:
        if group["draft"] == draft:
            content = json_schema_content(group["schema"])
            for value, is_valid in group["tests"]:
                if (content.fault(value.encode()) is None) != is_valid:
                    wrong.append((group["file"], group["about"], value))
    assert wrong == []


def test_the_suite_is_whole() -> None:
    counts = Counter[str]()
    for group in GROUPS:
        counts["format" if "/format/" in group["file"] else group["file"]] += len(group["tests"])

    assert counts["optional/bignum.json"] == 45
    assert counts["format"] > 1_600
