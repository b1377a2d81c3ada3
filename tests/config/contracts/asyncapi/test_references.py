"""References may point to places in a document and in files in its folder, and to nothing else."""

import json
import os
from pathlib import Path

import pytest

from tests.config.contracts.asyncapi.documents import (
    Validator,
    channel_with,
    load_document,
    problems_of_document,
)


def test_follows_references_to_files_in_the_folder_and_its_subfolders(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "messages.yaml").write_text("order: {payload: {$ref: '../schemas.json#/order~1v1'}}\n")
    (tmp_path / "schemas.json").write_text(
        '{"order/v1": {"type": "object", "properties": {"a": {"$ref": "#/own"}}}, "own": {"$ref": "parts/own.yaml"}}'
    )
    (tmp_path / "parts" / "own.yaml").write_text("type: integer\n")
    document = channel_with("{}").replace("payload: {}", "$ref: './parts/messages.yaml#/order'")

    loaded = load_document(tmp_path, document)

    rules = Validator(loaded)
    values = ({"a": 1}, {"a": "1"}, {}, [])
    assert [rules.violated_names(json.dumps(value).encode()) == [] for value in values] == [True, False, True, False]
    assert {file.name for file in loaded.source.referenced} == {"messages.yaml", "schemas.json", "own.yaml"}


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        ("http://127.0.0.1:9/a.yaml", "http://127.0.0.1:9/a.yaml is not read from the network; save it beside"),
        ("file:///etc/passwd", "file:///etc/passwd is not read from the network"),
        ("//example.com/a", "is not read from the network"),
        ("/etc/passwd", "/etc/passwd is outside the document's folder; only files in it and below are read"),
        ("../a.yaml#/x", "../a.yaml is outside the document's folder"),
        ("a/../../a.yaml", "is outside the document's folder"),
        ("%2e%2e/a.yaml", "../a.yaml is outside the document's folder"),
        ("..\\a.yaml", "is outside the document's folder"),
        ("link.yaml", "link.yaml is a link to a file outside the document's folder"),
        ("none.yaml", "F/sub/none.yaml: cannot be read: No such file or directory"),
        ("bad.yaml", "bad.yaml: F/sub/bad.yaml:2: not YAML"),
        ("fifo.yaml", "fifo.yaml"),
        ("#/components/none", "#/components/none cannot be resolved: there is no components"),
        ("#name", "#name is not a JSON pointer"),
        ("#/x-loop", "resolves through too many references"),
        ("#/x-self", "a chain of more than 50 references"),
    ],
)
def test_rejects_external_unreadable_or_circular_references(target: str, wrong: str, tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    (tmp_path / "a.yaml").write_text("x: {}\n")
    (folder / "link.yaml").symlink_to(tmp_path / "a.yaml")
    (folder / "bad.yaml").write_text("a: [\n")
    os.mkfifo(folder / "fifo.yaml")
    loops = "x-loop: {$ref: '#/x-loop/a'}\nx-self: {$ref: '#/x-self'}\n"
    (folder / "shop.asyncapi.yaml").write_text(channel_with(f"{{$ref: {json.dumps(target)}}}") + loops)

    (problem,) = problems_of_document(tmp_path, channel_with("{}"), "contracts: sub/shop.asyncapi.yaml\n")

    assert wrong in problem


def test_follows_symbolic_link_within_the_folder(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "a.yaml").write_text("type: integer\n")
    (tmp_path / "a.yaml").symlink_to(tmp_path / "..data" / "a.yaml")

    rules = Validator(load_document(tmp_path, channel_with("{$ref: a.yaml}")))

    assert [rules.violated_names(value) == [] for value in (b"1", b'"1"')] == [True, False]


def test_resolves_recursive_schema(tmp_path: Path) -> None:
    tree = "{type: object, properties: {next: {$ref: '#/components/schemas/tree'}, n: {type: integer}}, required: [n]}"
    document = channel_with("{$ref: '#/components/schemas/tree'}") + f"components: {{schemas: {{tree: {tree}}}}}\n"

    rules = Validator(load_document(tmp_path, document))

    values = ({"n": 1, "next": {"n": 2, "next": {"n": 3}}}, {"n": 1, "next": {"n": 2, "next": {}}})
    assert [rules.violated_names(json.dumps(value).encode()) == [] for value in values] == [True, False]


def test_limits_schema_expansion_nesting_depth_and_message_count(tmp_path: Path) -> None:
    both = "properties: {a: {allOf: [{$ref: '#/components/schemas/sN'}, {$ref: '#/components/schemas/sN'}]}}"
    pairs = ", ".join(f"s{i}: {{{both.replace('sN', f's{i + 1}')}}}" for i in range(60))
    shared = channel_with("{$ref: '#/components/schemas/s0'}")
    shared += f"components: {{schemas: {{{pairs}, s60: {{type: object}}}}}}\n"
    assert len(str(load_document(tmp_path, shared).config.topics[0].rules)) < 20_000

    deep = '{"properties": {"a": ' * 120 + "true" + "}}" * 120
    (problem,) = problems_of_document(tmp_path, channel_with(deep))
    assert "nested more than 100 levels deep" in problem

    many = channel_with("{}") + "".join(f"      m{i}: {{payload: {{}}}}\n" for i in range(101))
    (problem,) = problems_of_document(tmp_path, many)
    assert "more than 100 messages" in problem

    steps = "".join(f"x-{i}: {{$ref: '#/x-{i + 1}/k/k/k'}}\n" for i in range(40)) + "x-40: {k: {k: {k: {}}}}\n"
    (problem,) = problems_of_document(tmp_path, channel_with("{$ref: '#/x-0'}") + steps)
    assert "there is no k" in problem or "too many references" in problem

    values = ", ".join(map(str, range(10_000)))
    shared = "{messages: {m: {payload: {$ref: '#/components/schemas/s'}}}, address: N}"
    channels = "".join(f"  d{i}: {shared.replace('N', f'd{i}')}\n" for i in range(21))
    document = channel_with("{}") + channels + f"components: {{schemas: {{s: {{enum: [{values}]}}}}}}\n"
    assert all("more than 200000 values" in each for each in problems_of_document(tmp_path, document))
