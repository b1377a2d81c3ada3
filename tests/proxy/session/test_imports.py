"""The files of a session import each other one way, and its parts do not reach through each other."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.oracle.kafka_java import ROOT

ROOMS = ("proxy/session", "proxy/fastpath", "proxy/responses")
FILES = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*")) if file.suffix in (".py", ".pyx")]
_NATIVE = re.compile(r"^\s*from (\S+) c?import (\w+)", re.MULTILINE)


def name_of(file: Path) -> str:
    return ".".join(("sluicegate", *file.relative_to(ROOT).with_suffix("").parts))


NAMES = {name_of(file) for file in FILES}


def imported_by(text: str, is_native: bool) -> set[str]:
    """The rooms' modules that a file imports, under TYPE_CHECKING too: a reader follows them."""
    if is_native:
        found = {name for module, what in _NATIVE.findall(text) for name in (module, f"{module}.{what}")}
    else:
        imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and node.module]
        found = {f"{node.module}.{alias.name}" for node in imports for alias in node.names}
        found |= {str(node.module) for node in imports}
    return found & NAMES


def cycle_in(graph: dict[str, set[str]]) -> list[str] | None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return None


def test_no_file_is_imported_by_what_it_imports() -> None:
    graph = {name_of(file): imported_by(file.read_text(), file.suffix == ".pyx") - {name_of(file)} for file in FILES}

    assert sum(map(len, graph.values())) > len(FILES)
    assert cycle_in(graph) is None


def test_an_import_for_types_alone_counts() -> None:
    session, leaving = "sluicegate.proxy.session.session", "sluicegate.proxy.session.leaving"
    text = f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {session} import Session\n"

    assert imported_by(text, is_native=False) == {session}
    assert cycle_in({leaving: {session}, session: {leaving}}) is not None


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_part_has_the_session(file: Path) -> None:
    assert "self._session" not in file.read_text()
