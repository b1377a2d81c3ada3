"""Documents are validated with AsyncAPI's own JSON Schema. AsyncAPI's own examples are valid."""

import json
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sluicegate.config.contracts.contract_file import contract_in_file, topics_in
from sluicegate.config.contracts.document import value_of
from sluicegate.config.contracts.referenced_files import references_of
from sluicegate.config.files.yaml_source import read_content
from tests.config.contracts.asyncapi.documents import SHOP_2, SHOP_3, channel_with, problems_of_document

# The folder `examples` of the tags v2.6.0, v3.0.0 and v3.1.0 of github.com/asyncapi/spec (Apache-2.0).
EXAMPLES = Path(__file__).with_name("examples.tar.xz")
NO_KEY = "AsyncAPI 3.0 has no such key"
ORDER = "components.schemas.order.properties"
OUTSIDE = "is outside the document's folder; only files in it and below are read"
NETWORK = "is not read from the network; save it beside the document"
STREETLIGHTS = [
    r"/smartylighting\.streetlights\.1\.0\.event\.[^.]+\.lighting\.measured/",
    *(rf"/smartylighting\.streetlights\.1\.0\.action\.[^.]+\.{what}/" for what in (r"turn\.on", r"turn\.off", "dim")),
]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    with tarfile.open(EXAMPLES) as files:
        files.extractall(folder, filter="data")
    return folder


def documents_in(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*.y*ml")):
        if file.parent.name != "common":  # files in that folder are parts of other files
            yield file


def read_example(file: Path) -> tuple[list[str], list[str]]:
    """Return the topics of an example, and its errors without the places."""
    source = contract_in_file(read_content(file.read_bytes(), str(file), value_of), file)
    valid = not source.problems
    topics = topics_in(source, file, None, "reject", partial(references_of, source)) if valid else []
    return [topic.topic for topic in topics], [problem.message for problem in source.problems]


@pytest.mark.parametrize(("version", "count"), [("v2.6.0", 21), ("v3.0.0", 24), ("v3.1.0", 24)])
def test_asyncapi_examples_load_except_for_external_references(version: str, count: int, examples: Path) -> None:
    read = {str(file.relative_to(examples / version)): read_example(file) for file in documents_in(examples / version)}

    assert len(read) == count
    refused = {name: errors for name, (_, errors) in read.items() if errors}
    assert {name: len(errors) for name, errors in refused.items()} == {
        "social-media/backend/asyncapi.yaml": 1,
        "social-media/frontend/asyncapi.yaml": 1,
        **({"adeo-kafka-request-reply-asyncapi.yml": 2 if version == "v3.0.0" else 1} if version != "v2.6.0" else {}),
    }
    assert all(error.endswith((OUTSIDE, NETWORK)) for errors in refused.values() for error in errors)
    assert {
        name.partition(".")[0].removesuffix("-asyncapi"): topics for name, (topics, _) in read.items() if topics
    } == {
        "streetlights-kafka": STREETLIGHTS,
        "streetlights-operation-security": STREETLIGHTS,
    }


@pytest.mark.parametrize("version", ["v2.6.0", "v3.0.0"])
def test_all_asyncapi_example_channels_load_as_kafka_topics(version: str, examples: Path) -> None:
    """All examples without references to other files: their servers are removed, and each channel is a topic."""
    for file in documents_in(examples / version):
        if "social-media" in file.parts or file.name.startswith("adeo"):
            continue
        data = as_topics(read_content(file.read_bytes(), str(file), value_of).data)
        source = contract_in_file(read_content(json.dumps(data).encode(), str(file), value_of), file)

        topics = topics_in(source, file, None, "reject")

        assert source.problems == []
        assert [topic.topic for topic in topics] == [f"t{i}" for i in range(len(data["channels"]))]
        assert all("contract.payload" in [rule.keys["name"] for rule in topic.rules] for topic in topics), file


def as_topics(document: dict[str, Any]) -> dict[str, Any]:
    document.pop("servers", None)
    for i, channel in enumerate(document["channels"].values()):
        channel["bindings"] = {"kafka": {"topic": f"t{i}"}}
        channel.pop("servers", None)
    return document


@pytest.mark.parametrize(
    ("document", "right", "wrong", "words"),
    [
        (SHOP_3, "address:", "adress:", f"channels.orders.adress: {NO_KEY}"),
        (SHOP_3, "      headers:", "      header:", f"components.messageTraits.common.header: {NO_KEY}"),
        (SHOP_3, "{kafka: {key:", "{kafka: {keys:", f"components.messages.order.bindings.kafka.keys: {NO_KEY}"),
        (SHOP_3, "protocol: kafka", "protocols: kafka", f"servers.live.protocols: {NO_KEY}"),
        (SHOP_3, "lines: {type: array", "lines: {type: list", f'{ORDER}.lines.type: "list" is not'),
        (SHOP_3, "{type: string, minLength: 1}", "{minLength: one}", f'{ORDER}.id.minLength: "one" is not of type'),
        (SHOP_2, "publish:", "publsh:", "channels.orders.v1.publsh: AsyncAPI 2.6 has no such key"),
        (SHOP_2, "title: Shop, ", "", 'info: "title" is a required property'),
    ],
)
def test_invalid_asyncapi_key_is_reported_with_file_and_line(
    document: str, right: str, wrong: str, words: str, tmp_path: Path
) -> None:
    assert document.count(right) == 1

    problems = problems_of_document(tmp_path, document.replace(right, wrong))

    line = document[: document.index(right)].count("\n") + 1
    assert any(each.startswith(f"F/shop.asyncapi.yaml:{line}: {words}") for each in problems), problems


def test_accepts_reference_that_matches_several_schema_alternatives(tmp_path: Path) -> None:
    """The schema of Kafka's key allows a schema or a reference, and a reference is also a schema."""
    key = "bindings: {kafka: {key: {$ref: '#/components/schemas/k'}}}"
    document = channel_with("{}", key) + "components: {schemas: {k: {type: string}}}\n"

    (problem,) = problems_of_document(tmp_path, document.replace("{type: string}", "{type: text}"))

    assert "components.schemas.k.type" in problem


@pytest.mark.parametrize("version", ["2.7.0", "3.2.0", "4.0.0", "3", "3.0"])
def test_rejects_unknown_asyncapi_version(version: str, tmp_path: Path) -> None:
    (problem,) = problems_of_document(tmp_path, channel_with("{}", version=version))

    assert f"versions 2.0 to 2.6, 3.0 and 3.1 of AsyncAPI are read; found {version}" in problem
