"""With `formats: annotate`, formats in JSON Schemas have no effect, wherever the schema comes from and is evaluated."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sluicegate.config.content_keys import Schema
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.proxy.rules_process.messages import EvaluatorKind, Specification
from sluicegate.proxy.rules_process.rule_limits import RuleLimits
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.rules_process.stoppable import StoppableContent
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.rule import RecordRule, Side
from sluicegate.validation.rules.schemas.content import Content, SchemaLanguage
from sluicegate.validation.rules.schemas.framing import ConfluentFraming
from sluicegate.validation.rules.schemas.registered_schema import RegisteredSchema
from tests.validation.rules.records import record

SCHEMA = '{"type": "object", "properties": {"ip": {"type": "string", "format": "ipv4"}}}'
DRAFT_3 = '{"$schema": "http://json-schema.org/draft-03/schema#", "properties": {"ip": {"format": "color"}}}'
UNFORMATTED = b'{"ip": "x"}'


class OneSchema:
    """A registry with one schema, under any subject (`Schemas`)."""

    name = "main"
    framing = ConfluentFraming()

    def __init__(self, content: Content) -> None:
        self._schema = RegisteredSchema(SchemaLanguage.JSON, content)

    def known(self, _schema_id: object) -> RegisteredSchema:
        return self._schema

    schema = known

    def is_registered_under(self, _schema_id: object, _subject: str) -> bool:
        return True

    def count_encrypted(self, _part: object) -> None:
        return


@pytest.fixture(scope="module")
def process() -> Iterator[RulesProcess]:
    made = RulesProcess(RuleLimits(2.0, 256 << 20), WaitBudget())
    yield made
    made.close()


def rule_of_file(text: str, formats: Any, _process: RulesProcess) -> RecordRule:
    return SchemaRules({}).of_schema(Schema(text=text, format="json", formats=formats), Side.VALUE)


def rule_of_file_in_process(text: str, formats: Any, process: RulesProcess) -> RecordRule:
    return SchemaRules({}, process).of_schema(Schema(text=text, format="json", formats=formats), Side.VALUE)


def rule_of_registry(text: str, formats: Any, _process: RulesProcess) -> RecordRule:
    rules = SchemaRules({"main": OneSchema(json_schema_content(text))})
    return rules.of_schema(Schema(registry="main", formats=formats), Side.VALUE)


def rule_of_registry_in_process(text: str, formats: Any, process: RulesProcess) -> RecordRule:
    """Return a rule about a schema that only the rules process has compiled."""
    content = StoppableContent(Specification(EvaluatorKind.JSON, text.encode()), None, process)
    return SchemaRules({"main": OneSchema(content)}).of_schema(Schema(registry="main", formats=formats), Side.VALUE)


@pytest.mark.parametrize("make", [rule_of_file, rule_of_file_in_process, rule_of_registry, rule_of_registry_in_process])
@pytest.mark.parametrize("text", [SCHEMA, DRAFT_3])
def test_json_schema_formats_are_ignored_if_only_annotated(
    make: Callable[..., RecordRule], text: str, process: RulesProcess
) -> None:
    asserting, annotating = make(text, "assert", process), make(text, "annotate", process)
    behind = b"\0\0\0\0\7" if make in (rule_of_registry, rule_of_registry_in_process) else b""

    bad, wrong = record(value=behind + UNFORMATTED), record(value=behind + b"[")
    for rule in (annotating, asserting, annotating):
        assert (rule.fault(bad) is None) == (rule is annotating)
        assert rule.fault(wrong) is not None


@pytest.mark.parametrize(
    ("text", "is_colour"),
    [
        ("fuchsia", True),
        ("#CC8899", True),
        ("#c89", True),
        ("RGB(0, 50%,255)", True),
        ("#00332520", False),
        ("puce", False),
    ],
)
def test_draft_3_color_format_accepts_css_colors(text: str, is_colour: bool, process: RulesProcess) -> None:
    one = record(value=f'{{"ip": "{text}"}}'.encode())

    assert (rule_of_file(DRAFT_3, "assert", process).fault(one) is None) == is_colour


def test_rejects_formats_key_for_schemas_other_than_json() -> None:
    with pytest.raises(ValueError, match="formats is only valid for JSON Schemas"):
        Schema(text="{}", format="avro", formats="annotate")
