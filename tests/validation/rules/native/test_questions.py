"""Rules have native checks, and the checks of several rules are combined."""

import json

import pytest

from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.built_in import MostRecords, Required, Size, Utf8
from sluicegate.validation.rules.json.schema import json_schema_content
from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.native.questions import BytesQuestion, OrdinaryQuestions, ordinary_questions
from sluicegate.validation.rules.rule import Part, RuledRecord, Side
from sluicegate.validation.rules.schemas.schema_file import FollowsSchema
from tests.validation.rules.inline_rule import InlineRule


class CustomRuleStub(InlineRule):
    """A rule with only the attributes that every rule must have."""

    parts = Part.NONE
    is_slow = False

    def fault(self, record: RuledRecord) -> str | None:
        return None


def test_size_rules_are_combined_into_the_strictest_native_check() -> None:
    rules = [
        Required(Side.KEY),
        Size(Side.KEY, 2, 9),
        Size(Side.KEY, 1, None),
        Utf8(Side.VALUE),
        JsonSyntax(Side.VALUE, max_depth=9),
        JsonSyntax(Side.VALUE, max_depth=5),
        MostRecords(7),
        MostRecords(8),
    ]

    assert ordinary_questions(rules) == OrdinaryQuestions(
        BytesQuestion(required=True, least=2, most=9), BytesQuestion(is_text=True, json_depth=5), 7
    )


@pytest.mark.parametrize("other", [CustomRuleStub(), JsonSyntax(Side.VALUE, "reject")])
def test_one_rule_without_a_native_check_sends_all_rules_to_the_slow_path(other: object) -> None:
    assert ordinary_questions([Required(Side.KEY), other]) is None


@pytest.mark.parametrize(
    ("schema", "is_asked"),
    [
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}]}, True),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", "R"]}]}, True),
        ({"type": "map", "values": "null"}, True),
        ({"type": "array", "items": "null"}, True),
        ({"type": "array", "items": {"type": "record", "name": "R", "fields": []}}, True),
        (
            {"type": "record", "name": "R", "fields": [{"name": "a", "type": "null"}, {"name": "b", "type": "int"}]},
            True,
        ),
        ({"type": "record", "name": "R", "fields": [{"name": f"n{i}", "type": "null"} for i in range(20_000)]}, False),
        (
            ["int", {"type": "record", "name": "R", "fields": [{"name": f"n{i}", "type": "null"} for i in range(9)]}],
            False,
        ),
    ],
)
def test_avro_schemas_of_low_cost_are_validated_natively(schema: object, is_asked: bool) -> None:
    questions = ordinary_questions([FollowsSchema(Side.VALUE, avro_content(json.dumps(schema)))])
    assert (questions is not None) == is_asked


def test_json_schemas_with_a_plan_are_validated_natively() -> None:
    assert ordinary_questions([FollowsSchema(Side.KEY, json_schema_content('{"type": "object"}'))]) is not None
    assert ordinary_questions([FollowsSchema(Side.KEY, json_schema_content('{"pattern": "a"}'))]) is None
