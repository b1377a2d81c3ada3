"""Finds the imports of each module, also under TYPE_CHECKING and in native files, because readers follow these too."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tests.oracle.kafka_java import ROOT

PACKAGES = ("config", "protocol", "validation", "dead_letters", "proxy", "pipeline")
Graph = dict[str, set[str]]
"""The names of the modules, or folders, that each one imports."""
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


def import_graph() -> Graph:
    """Return the modules that each module imports; of a package and its module only the module."""
    files = [path for package in PACKAGES for kind in ("*.py", "*.pyx") for path in (ROOT / package).rglob(kind)]
    modules = {module_of(path): path for path in files}
    graph = {}
    for module, path in modules.items():
        names = imported_names(path.read_text(), path.suffix == ".pyx")
        used = {name for name in names if name in modules and name != module}
        graph[module] = {name for name in used if not any(other.startswith(f"{name}.") for other in used)}
    return graph


def cycle_in(graph: Graph) -> list[str] | None:
    """Return a cycle, its first node again at its end, in which each node is imported by the next; None without one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return None
