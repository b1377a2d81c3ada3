"""The configuration's JSON Schema agrees with examples and with the model."""

import re
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from jsonschema import Draft202012Validator

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.keys import each_key_of
from sluicegate.config.loading import ConfigError, load
from sluicegate.config.reference.json_schema import schema_of_file, schema_of_topic_files
from sluicegate.config.reference.page import sections, words_of
from tests.config.reading import SMALLEST

ROOT = Path(__file__).parents[3]
WHOLE = Draft202012Validator(schema_of_file())
TOPICS = Draft202012Validator(schema_of_topic_files())
FENCED = re.compile(r"^( *)```ya?ml\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def example_configurations() -> list[Any]:
    """Yield every configuration in the pages and every configuration file of the repository."""
    found = [
        pytest.param(text, id=f"{page.name}-{i}")
        for page in _PAGES
        for i, (_, text) in enumerate(FENCED.findall(page.read_text()))
        if "apiVersion:" not in text  # a Kubernetes manifest
        and any(key in (yaml.load(text, yaml.BaseLoader) or ()) for key in ("upstream", "topics", "defaults", "limits"))
    ]
    return [*found, pytest.param((ROOT / "sluicegate.yaml").read_text(), id="sluicegate.yaml")]


def parse_as_editor(text: str) -> Any:
    """Return the YAML as an editor reads it, by YAML 1.2: only numbers, true and false are special, and a date is a
    text."""
    return yaml.load(text, _Editor)


class _Editor(yaml.SafeLoader):
    yaml_implicit_resolvers: ClassVar[Any] = {
        first: [(tag, pattern) for tag, pattern in known if not tag.endswith(":timestamp")]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def test_generated_schemas_are_valid_json_schemas() -> None:
    Draft202012Validator.check_schema(schema_of_file())
    Draft202012Validator.check_schema(schema_of_topic_files())


@pytest.mark.parametrize("text", example_configurations())
def test_json_schema_accepts_every_documented_example(text: str) -> None:
    data = parse_as_editor(text)
    parts = {"upstream": {"bootstrap": "h:1"}, "listen": {"bootstrap": "h:1"}}
    if set(data) <= {"topics", "owner"}:
        assert [error.message for error in TOPICS.iter_errors(data)] == []
        return
    assert [error.message for error in WHOLE.iter_errors(parts | data)] == []


def test_documentation_contains_example_configurations() -> None:
    assert len(example_configurations()) > 5


ACCEPTED = [
    "limits: {max_frame_bytes: 100MB, idle_timeout_seconds: 1.5h}",
    "limits: {max_frame_bytes: '1_000_000'}",
    "limits:",
    "drain_timeout_seconds: 5min",
    "drain_timeout_seconds:",
    "workers: '4'",
    "topics:\n  - {match: 12, checks: none, mode:}",
    "topics: [{match: /a+/, rehearse: {message.timestamp.after.max.ms: 1h}}]",
    "topics: [{match: a, rehearse: {message.timestamp.after.max.ms: [1m, 3600000]}}]",
    "topics: [{match: a, cleanup.policy: 'compact,delete', max.message.bytes: 1MiB}]",
    "topic_files: policies/*.yaml",
    "topic_files: [a.yaml, b.yaml]",
    "topic_files: [{path: p/*.yaml}, {path: q/*.yaml, topics: q.*}, {path: r/*.yaml, topics: [q.*, 12]}]",
    "log: {client_id: 007}",
    "defaults: {message.timestamp.before.max.ms: 9223372036854775807}",
]
REJECTED = [
    "limits: {max_frame_bites: 5}",
    "limits: {max_frame_bytes: 1}",
    "limits: {max_frame_bytes: 100 MBit}",
    "limits: {idle_timeout_seconds: -5}",
    "drain_timeout_seconds: soon",
    "workers: 0",
    "workers: 65",
    "topics: {match: a}",
    "topics: [{mode: observe}]",
    "topics: [{match: a, mode: obsrve}]",
    "topics: [{match: a, fix: now}]",
    "topics: [{match: a, fix: {timestamp: later}}]",
    "topics: [{match: a, fix:}]",
    "topics: [{match: a, cleanup.policy: compakt}]",
    "topics: [{match: a, message: {timestamp.type: CreateTime}}]",
    "admin: {listen: 9650}",
    "violations: [file]",
    "log: {level: loud}",
    "topic_files: {a: b}",
    "topic_files: {path: a.yaml}",
    "topic_files: [{path: p/*.yaml, topics: [[a]]}]",
    "topic_files: [{topics: a}]",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_json_schema_accepts_valid_configurations(text: str) -> None:
    load(read_yaml(SMALLEST + existing_parts(text), "c.yaml"), {})

    assert [error.message for error in WHOLE.iter_errors(parse_as_editor(SMALLEST + text))] == []


@pytest.mark.parametrize("text", REJECTED)
def test_json_schema_rejects_invalid_configurations(text: str) -> None:
    with pytest.raises(ConfigError):
        load(read_yaml(SMALLEST + text, "c.yaml"), {})

    assert not WHOLE.is_valid(parse_as_editor(SMALLEST + text))


def existing_parts(text: str) -> str:
    """Return the parts that exist."""
    return "" if text.startswith("topic_files: [") else text


@pytest.mark.parametrize("text", ["listen: {bootstrap: 'h:1'}", SMALLEST.replace("bootstrap: [", "x: [")])
def test_json_schema_rejects_missing_required_keys(text: str) -> None:
    assert not WHOLE.is_valid(parse_as_editor(text))


def test_topic_files_have_a_separate_json_schema() -> None:
    assert TOPICS.is_valid({"topics": [{"match": "a"}]})
    assert TOPICS.is_valid({})
    assert not TOPICS.is_valid({"limits": {}})
    assert not TOPICS.is_valid({"topics": [{"mode": "observe"}]})


def test_json_schema_descriptions_equal_the_reference_without_links() -> None:
    described = set()

    def check_descriptions(schema: Any) -> None:
        if isinstance(schema, dict):
            if isinstance(schema.get("description"), str):
                described.add(schema["description"])
            for inner in schema.values():
                check_descriptions(inner)
        elif isinstance(schema, list):
            for inner in schema:
                check_descriptions(inner)

    check_descriptions(schema_of_file())
    assert all("](" not in words for words in described)
    by_model = {
        section.model: section for section in sections()
    }  # a type that is used at several places has one schema
    keys = {words_of(section.name, key) for section in by_model.values() for key in each_key_of(section.model)}
    assert len(keys) > 100
    assert {words for words in keys if "](" not in words} <= described
