"""No function, fixture or class has a name of one word that does not say what it does or is."""

import ast

import pytest

from tests.oracle.kafka_java import ROOT

FOLDERS = ("config", "dead_letters", "pipeline", "protocol", "proxy", "tests", "validation")
BARE = {
    *("bad", "good", "no", "old", "one", "other", "rest", "whole"),  # of what?
    *("broken", "decoded", "forged", "framed", "kept", "loaded", "looked", "measured", "mutated", "packed", "polluted"),
    *("said", "told", "wanted", "wrapped"),  # what was?
    *("becomes", "beside", "gate", "helper", "info", "manager", "misc", "story", "stuff", "thing", "util"),
}


def bare_names(text: str) -> list[str]:
    """Return the bare names that a file defines, with their lines."""
    return [
        f"{node.lineno}: {node.name}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name in BARE
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_function_or_class_has_a_bare_name(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{each}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for each in bare_names(path.read_text(encoding="utf-8"))
    ]
    assert found == [], "name what it does (a verb and its object) or is (a noun that stands alone)"


def test_bare_names_of_functions_and_classes_are_found() -> None:
    text = "def good_batch():\n    def good(): ...\n\nclass Info: ...\n"
    assert bare_names(text) == ["2: good"]
