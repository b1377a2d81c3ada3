"""There are no import cycles between files or folders, and the design page's pictures match the imports."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.oracle.kafka_java import ROOT
from tests.structure.folders import folder_graph, imports_of_cycle
from tests.structure.imports import cycle_in, import_graph, imported_names

SESSION_FILES = [
    path
    for room in ("session", "fastpath", "responses")
    for path in sorted((ROOT / "proxy" / room).rglob("*"))
    if path.suffix in (".py", ".pyx")
]


def test_there_is_no_import_cycle() -> None:
    graph = import_graph()

    assert sum(map(len, graph.values())) > len(graph), "no imports were found"
    cycle = cycle_in(graph)
    assert cycle is None, f"{' -> '.join(cycle or ())}: move the shared code into a module that imports neither"


@pytest.mark.parametrize(
    ("text", "is_native"),
    [
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sluicegate.a import B\n", False),
        ("def late():\n    from sluicegate.a import B\n", False),
        ("from sluicegate.a cimport B, C\n", True),
        ("from sluicegate.a import (\n    B,\n)\n", True),
    ],
)
def test_the_check_finds_each_kind_of_import(text: str, is_native: bool) -> None:
    assert {"sluicegate.a", "sluicegate.a.B"} <= imported_names(text, is_native)
    assert cycle_in({"sluicegate.a": {"sluicegate.b"}, "sluicegate.b": {"sluicegate.a"}}) is not None


@pytest.mark.parametrize("file", SESSION_FILES, ids=lambda file: file.name)
def test_no_part_of_a_session_refers_to_the_session(file: Path) -> None:
    assert "self._session" not in file.read_text()


def test_the_design_page_lists_the_packages_in_import_order() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rooms = next(each["layers"] for each in contracts if each.get("containers") == ["sluicegate.proxy"])
    table = (ROOT / "docs/design.md").read_text().partition("| room | holds |")[2].partition("\n\n")[0]

    listed = [re.findall(r"`(\w+)/`", row.split("|")[1]) for row in table.splitlines()[2:]]

    assert listed == [re.findall(r"\w+", layer) for layer in rooms]


def test_the_design_page_shows_the_folders_of_a_room_in_import_order() -> None:
    modules = import_graph()
    table = (ROOT / "docs/design.md").read_text().partition("| room | its folders |")[2].partition("\n\n")[0]
    rows = [re.findall(r"`([\w/]+)/`|\*(root)\*", row) for row in table.splitlines()[2:]]

    assert rows, "no rows were found"
    for (room, _), *cells in rows:
        package = f"sluicegate.{room.replace('/', '.')}"
        listed = [package if root else f"{package}.{name}" for name, root in cells]
        graph = folder_graph(modules, [name for name in listed if name != package])
        assert {name for name in graph if f"{name}.".startswith(f"{package}.")} == set(listed)
        for place, name in enumerate(listed):
            assert graph[name].isdisjoint(listed[:place]), f"{name} imports a folder on its left"


def test_folders_that_need_each_other_are_found_with_their_imports() -> None:
    graph = {"room.a": {"room.part.one"}, "room.b": {"room.part.one"}, "room.part.one": {"room.low"}, "room.low": set()}

    cycle = cycle_in(folder_graph(graph, []))

    assert cycle is not None
    assert imports_of_cycle(graph, cycle, []) == [
        "room.part.one imports room.low",
        "room.a imports room.part.one",
        "room.b imports room.part.one",
    ]
    assert cycle_in(folder_graph(graph, ["room"])) is None
