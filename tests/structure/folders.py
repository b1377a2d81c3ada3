"""Checks that folders import one way: a contract for import-linter, which itself checks only Python files."""

from collections.abc import Collection
from itertools import pairwise

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

from tests.structure.imports import Graph, cycle_in, import_graph


def folders_of(graph: Graph, as_one: Collection[str]) -> dict[str, str]:
    """Return the folder of each module. A folder of `as_one` includes the folders in it."""
    packages = {module.rpartition(".")[0] for module in graph}
    folders = {}
    for module in graph:
        own = module if module in packages else module.rpartition(".")[0]
        folders[module] = next((whole for whole in as_one if f"{own}.".startswith(f"{whole}.")), own)
    return folders


def folder_graph(graph: Graph, as_one: Collection[str]) -> Graph:
    """Return the folders that the files of each folder import from."""
    folders = folders_of(graph, as_one)
    found: Graph = {folder: set() for folder in folders.values()}
    for module, used in graph.items():
        found[folders[module]] |= {folders[other] for other in used} - {folders[module]}
    return found


def imports_of_cycle(graph: Graph, cycle: list[str], as_one: Collection[str]) -> list[str]:
    """Return the imports of a cycle of folders, a line for each; the step with the fewest imports comes first."""
    folders = folders_of(graph, as_one)
    steps: dict[tuple[str, str], list[str]] = {(one, other): [] for other, one in pairwise(cycle)}
    for module, used in sorted(graph.items()):
        for other in sorted(used):
            if (step := (folders[module], folders[other])) in steps:
                steps[step].append(f"{module} imports {other}")
    return [cause for of_step in sorted(steps.values(), key=len) for cause in of_step]


class FoldersContract(Contract):
    """There are no import cycles between folders, directly or through others. `as_one`: as in `folders_of`."""

    as_one = fields.SetField(subfield=fields.StringField(), required=False, default=set())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        modules = import_graph()
        cycle = cycle_in(folder_graph(modules, self.as_one))
        return ContractCheck(cycle is None, metadata={"causes": imports_of_cycle(modules, cycle or [], self.as_one)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        output.print_error("Folders need each other. Move what they share into a folder that needs neither:")
        for cause in check.metadata["causes"]:
            output.print_error(f"- {cause}", bold=False)
