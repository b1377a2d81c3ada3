"""No import cycles, including imports under TYPE_CHECKING and in native files: a reader follows those too."""

import ast
import re
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.oracle.kafka_java import ROOT

PACKAGES = ("config", "protocol", "validation", "proxy", "pipeline")
SESSION_FILES = [
    path
    for room in ("session", "fastpath", "responses")
    for path in sorted((ROOT / "proxy" / room).rglob("*"))
    if path.suffix in (".py", ".pyx")
]
_NATIVE_IMPORT = re.compile(r"^\s*from (\S+) c?import ([^(\n]+|\([^)]*\))", re.MULTILINE)


def module_of(path: Path) -> str:
    """Return the name under which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("sluicegate", *parts)).removesuffix(".__init__")


def imported_names(text: str, is_native: bool) -> set[str]:
    """Return the names that a file imports and the modules that it imports from."""
    found: set[str] = set()
    if is_native:
        for module, names in _NATIVE_IMPORT.findall(text):
            found |= {module, *(f"{module}.{name.split()[0]}" for name in names.strip("()").split(",") if name.strip())}
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def import_graph() -> dict[str, set[str]]:
    """Return the modules that each module imports; of a package and its module only the module."""
    files = [path for package in PACKAGES for kind in ("*.py", "*.pyx") for path in (ROOT / package).rglob(kind)]
    modules = {module_of(path): path for path in files}
    graph = {}
    for module, path in modules.items():
        names = imported_names(path.read_text(), path.suffix == ".pyx")
        used = {name for name in names if name in modules and name != module}
        graph[module] = {name for name in used if not any(other.startswith(f"{name}.") for other in used)}
    return graph


def cycle_in(graph: dict[str, set[str]]) -> list[str] | None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return None


def test_there_is_no_import_cycle() -> None:
    graph = import_graph()

    assert sum(map(len, graph.values())) > len(graph), "no imports were found"
    cycle = cycle_in(graph)
    assert cycle is None, f"{' -> '.join(cycle or ())}: move what they share into a module that imports neither"


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
