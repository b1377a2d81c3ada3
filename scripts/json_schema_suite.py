#!/usr/bin/env python3
"""Validates the tests of JSON-Schema-Test-Suite: prints the counts of each draft, and each difference with its reason.

scripts/json_schema_suite.py SUITE    # a folder with `tests`, of github.com/json-schema-org/JSON-Schema-Test-Suite

Schemas that refer to documents by an address are counted apart, because the proxy fetches none. Ends with 1 if there
are other differences than those in EXPLAINED.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.rule import StepBudget
from sluicegate.validation.rules.schemas.content import Formats, SchemaUnusable, with_formats

DRAFTS = {
    "draft3": "http://json-schema.org/draft-03/schema#",
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
EXPLAINED = {
    ("optional/format/ecmascript-regex.json", "ECMA 262 has no support for lookbehind"): (
        "ECMA-262 has had lookbehind since 2018, and Java has it"
    ),
    ("vocabulary.json", "no validation: invalid number, but it still validates"): (
        "jsonschema-rs applies all vocabularies, also those that a metaschema leaves out"
    ),
}
NOT_FETCHED = ("references are not fetched", "localhost:1234")


def main(suite: Path) -> None:
    others = 0
    print("| draft | tests | as expected | documents are not fetched | different |\n|---|---|---|---|---|")
    for draft, uri in DRAFTS.items():
        counts = Counter()
        found = []
        for file in sorted((suite / "tests" / draft).rglob("*.json")):
            name = file.relative_to(suite / "tests" / draft).as_posix()
            for group in json.loads(file.read_text()):
                for test, outcome in outcomes(group, uri, name):
                    counts[outcome] += 1
                    if outcome == "different":
                        found.append((name, test))
        print(f"| {draft} | {counts.total()} | {counts['same']} | {counts['not fetched']} | {counts['different']} |")
        for name, test in found:
            print(f"  {name}: {test}: {EXPLAINED.get((name, test), 'not explained')}")
            others += (name, test) not in EXPLAINED
    if others or not counts.total():
        sys.exit(f"{others} differences are not explained")


def outcomes(group: dict, uri: str, name: str):
    """Yield each test of a group with its outcome."""
    schema = group["schema"]
    if isinstance(schema, dict):
        schema = {"$schema": uri, **schema}
    text = json.dumps(schema)
    try:
        content = json_schema_content(text)
        if name == "format.json":  # these tests are about annotations
            content = with_formats(content, Formats.ANNOTATE, StepBudget())
    except SchemaUnusable as error:
        is_remote = any(words in f"{error} {text}" for words in NOT_FETCHED)
        for test in group["tests"]:
            yield f"{group['description']}: {error}", "not fetched" if is_remote else "different"
        return
    for test in group["tests"]:
        is_valid = content.fault(json.dumps(test["data"]).encode(), StepBudget()) is None
        yield test["description"], "same" if is_valid == test["valid"] else "different"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
