"""No files import each other, also not under TYPE_CHECKING or in native files: a reader follows those imports too."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.oracle.kafka_java import ROOT

PACKAGES = ("config", "protocol", "validation", "proxy", "pipeline")
_NATIVE_IMPORT = re.compile(r"^\s*from (\S+) c?import ([^(\n]+|\([^)]*\))", re.MULTILINE)


def module_of(path: Path) -> str:
    """The name that a file is imported as."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("sluicegate", *parts)).removesuffix(".__init__")


def imported_names(path: Path) -> set[str]:
    """Every name that a file imports, and every module that it imports from."""
    text = path.read_text()
    found: set[str] = set()
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
    else:
        for module, names in _NATIVE_IMPORT.findall(text):
            found |= {module, *(f"{module}.{name.split()[0]}" for name in names.strip("()").split(",") if name.strip())}
    return found


def import_graph() -> dict[str, set[str]]:
    """Each module with the modules that it imports; of a package and its module only the module."""
    files = [path for package in PACKAGES for kind in ("*.py", "*.pyx") for path in (ROOT / package).rglob(kind)]
    modules = {module_of(path): path for path in files}
    graph = {}
    for module, path in modules.items():
        used = {name for name in imported_names(path) if name in modules and name != module}
        graph[module] = {name for name in used if not any(other.startswith(f"{name}.") for other in used)}
    return graph


def test_no_files_import_each_other() -> None:
    try:
        TopologicalSorter(import_graph()).prepare()
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        pytest.fail(f"import cycle: {cycle}. Move what they share into a module that imports neither.")
