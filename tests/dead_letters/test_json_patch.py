"""JSON patches behave as in the examples of RFC 6902, appendix A, and RFC 6901, section 5."""

import json
from typing import Any

import pytest

from sluicegate.dead_letters.json_patch import BadPatch, ConditionFails, PatchFails, operations_of, patched


def applied(document: str, *operations: Any) -> Any:
    return patched(json.loads(document), operations_of(list(operations)))


# The numbers are those of the appendix.
@pytest.mark.parametrize(
    ("document", "operations", "expected"),
    [
        pytest.param(
            '{"foo": "bar"}', [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}, id="A.1"
        ),
        pytest.param(
            '{"foo": ["bar", "baz"]}',
            [{"op": "add", "path": "/foo/1", "value": "qux"}],
            {"foo": ["bar", "qux", "baz"]},
            id="A.2",
        ),
        pytest.param('{"baz": "qux", "foo": "bar"}', [{"op": "remove", "path": "/baz"}], {"foo": "bar"}, id="A.3"),
        pytest.param(
            '{"foo": ["bar", "qux", "baz"]}',
            [{"op": "remove", "path": "/foo/1"}],
            {"foo": ["bar", "baz"]},
            id="A.4",
        ),
        pytest.param(
            '{"baz": "qux", "foo": "bar"}',
            [{"op": "replace", "path": "/baz", "value": "boo"}],
            {"baz": "boo", "foo": "bar"},
            id="A.5",
        ),
        pytest.param(
            '{"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}}',
            [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
            {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
            id="A.6",
        ),
        pytest.param(
            '{"foo": ["all", "grass", "cows", "eat"]}',
            [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
            {"foo": ["all", "cows", "eat", "grass"]},
            id="A.7",
        ),
        pytest.param(
            '{"baz": "qux", "foo": ["a", 2, "c"]}',
            [{"op": "test", "path": "/baz", "value": "qux"}, {"op": "test", "path": "/foo/1", "value": 2}],
            {"baz": "qux", "foo": ["a", 2, "c"]},
            id="A.8",
        ),
        pytest.param(
            '{"foo": "bar"}',
            [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
            {"foo": "bar", "child": {"grandchild": {}}},
            id="A.10",
        ),
        pytest.param(
            '{"foo": "bar"}',
            [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}],
            {"foo": "bar", "baz": "qux"},
            id="A.11",
        ),
        pytest.param(
            '{"/": 9, "~1": 10}', [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}, id="A.14"
        ),
        pytest.param(
            '{"foo": ["bar"]}',
            [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
            {"foo": ["bar", ["abc", "def"]]},
            id="A.16",
        ),
    ],
)
def test_applies_the_examples_of_the_rfc(document: str, operations: list[Any], expected: Any) -> None:
    assert applied(document, *operations) == expected


def test_a_test_of_another_value_fails() -> None:
    with pytest.raises(ConditionFails):
        applied('{"baz": "qux"}', {"op": "test", "path": "/baz", "value": "bar"})  # A.9
    with pytest.raises(ConditionFails):
        applied('{"/": 9, "~1": 10}', {"op": "test", "path": "/~01", "value": "10"})  # A.15
    with pytest.raises(ConditionFails):
        applied("[1]", {"op": "test", "path": "/0", "value": True})  # section 4.6: the types must be equal


@pytest.mark.parametrize(
    ("document", "operation"),
    [
        pytest.param('{"foo": "bar"}', {"op": "add", "path": "/baz/bat", "value": "qux"}, id="A.12"),
        pytest.param("{}", {"op": "remove", "path": "/a"}, id="remove: the target must exist"),
        pytest.param("{}", {"op": "replace", "path": "/a", "value": 1}, id="replace: the target must exist"),
        pytest.param("[1]", {"op": "add", "path": "/2", "value": 1}, id="add: no gap in an array"),
        pytest.param("[1, 2]", {"op": "test", "path": "/01", "value": 2}, id="RFC 6901: no leading zero"),
        pytest.param("[1]", {"op": "replace", "path": "/-", "value": 2}, id="RFC 6901: - does not exist"),
        pytest.param('{"a": 1}', {"op": "copy", "from": "/b", "path": "/c"}, id="copy: the source must exist"),
    ],
)
def test_a_target_that_does_not_exist_fails(document: str, operation: Any) -> None:
    with pytest.raises(PatchFails):
        applied(document, operation)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({}, id="no array"),
        pytest.param(["add"], id="no object"),
        pytest.param([{"op": "spam", "path": "/a"}], id="unknown op"),
        pytest.param([{"op": "add", "path": "/a"}], id="no value"),
        pytest.param([{"op": "move", "path": "/a"}], id="no from"),
        pytest.param([{"op": "remove", "path": "a"}], id="no pointer"),
        pytest.param([{"op": "remove", "path": "/~2"}], id="no escape"),
        pytest.param([{"op": "move", "from": "/a", "path": "/a/b"}], id="into itself"),
    ],
)
def test_rejects_documents_that_are_not_json_patches(patch: Any) -> None:
    with pytest.raises(BadPatch):
        operations_of(patch)


def test_an_added_value_is_a_copy() -> None:
    operations = operations_of([{"op": "add", "path": "/a", "value": []}, {"op": "add", "path": "/a/-", "value": 1}])
    assert [patched({}, operations), patched({}, operations)] == [{"a": [1]}, {"a": [1]}]
