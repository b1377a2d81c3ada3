"""Responses of brokers to the proxy's own requests are read in one place, which ignores and reports surplus bytes."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.kafka_java import ROOT

_READERS = {
    "proxy/cluster/response_bodies.py": "`read_response`, which all others call",
    "proxy/session/handlers/topic_change_handler.py": "requests of clients",
    "proxy/responses/api_versions.py": "responses to clients, of which the proxy writes a copy",
    "proxy/responses/mock_cluster.py": "the same, of a mock cluster, and requests of clients",
    "pipeline/kafka/connection.py": "the pipeline's own client",
}


def parsing_lines(text: str) -> Iterator[int]:
    """Yield the lines that parse a message, by any name of its schema."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in ("parse", "parse_start") and not _is_a_module(node):
            yield node.lineno


def _is_a_module(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "urllib"


def test_only_read_response_parses_responses_of_brokers() -> None:
    found = {
        str(path.relative_to(ROOT)): lines
        for folder in ("proxy", "pipeline")
        for path in sorted(Path(ROOT, folder).rglob("*.py"))
        if (lines := list(parsing_lines(path.read_text())))
    }

    assert _READERS.keys() <= found.keys(), "a reader is in another file now"
    others = {file: lines for file, lines in found.items() if file not in _READERS}
    assert others == {}, "call sluicegate.proxy.cluster.response_bodies.read_response instead of .parse"


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        ("METADATA_RESPONSE.parse(response, 1)", True),
        ("read = partial(schema.parse, response)", True),
        ("schema.parse_start(response, 1)[0]", True),
        ("read_response(METADATA_RESPONSE, response, 1)", False),
        ("urllib.parse.urlsplit(url)", False),
        ("client.parsed(response)", False),
    ],
)
def test_the_check_finds_each_way_to_parse_a_response(line: str, is_found: bool) -> None:
    assert bool(list(parsing_lines(line))) == is_found
