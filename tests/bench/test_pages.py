"""Each figure in a generated table, in docs/performance.md and bench/results, comes from a result in bench/results."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from bench.figures import APPENDIX, PAGE, PARTS, RESULTS
from bench.summary import medians_table
from tests.bounds import table as bounds
from tests.bounds.cases import ALL_CASES

_BLOCK = re.compile(r"<!-- ([\w ]+) -->\n(.*?)<!-- /\1 -->", re.DOTALL)
_GOALS = "figure | load | value | goal | met"
BLOCKS: dict[str, str] = dict(_BLOCK.findall(PAGE.read_text() + PARTS.read_text()))
HELD_IN = {
    "goals": "bench.json",
    "live": "live.json",
    "encrypted": "encrypted.json",
    "scan": "scan.json",
    "live rules": "live_rules.json",
    "rules": "rules.json",
}


def stored_results(block: str) -> Any:
    return json.loads((RESULTS / HELD_IN[block]).read_text())


def parse_tables(block: str) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the header and the rows of each table in a generated block."""
    for table in re.findall(r"(?:^\|.*\n)+", BLOCKS[block], re.MULTILINE):
        header, _, *rows = (line.strip("| ") for line in table.splitlines())
        yield header, [row.split(" | ") for row in rows]


def goals_on_page(block: str) -> list[tuple[str, ...]]:
    return [tuple(row) for header, rows in parse_tables(block) if header == _GOALS for row in rows]


def format_result_row(row: dict[str, Any]) -> tuple[str, ...]:
    """Return a result as the texts of a table row."""
    bound = "at least" if row["met"] is not (row["value"] <= row["goal"]) else "at most"
    value = f"{row['value']:,.2f} {row['unit']}"
    return row["figure"], row["load"], value, f"{bound} {row['goal']:,.10g}", "yes" if row["met"] else "**no**"


def test_every_generated_table_is_compared() -> None:
    assert set(BLOCKS) == set(HELD_IN)
    assert sum(len(rows) for block in BLOCKS for _, rows in parse_tables(block)) > 50


@pytest.mark.parametrize("block", [name for name in HELD_IN if name != "rules"])
def test_goals_on_the_page_are_those_of_the_results(block: str) -> None:
    assert goals_on_page(block) == [format_result_row(row) for row in stored_results(block) if row["goal"] is not None]


@pytest.mark.parametrize("block", ["encrypted", "live rules"])
def test_costs_of_targets_on_the_page_are_those_of_the_results(block: str) -> None:
    (rows,) = (rows for header, rows in parse_tables(block) if header == "target | ms CPU per MB")
    medians = {figure["figure"]: f"{figure['value']:.2f}" for figure in stored_results(block)}

    for target, cost in rows:
        (median,) = (value for figure, value in medians.items() if figure.endswith(f" {target}"))
        assert cost.split(" ")[0] == median, target


def test_costs_of_scans_on_the_page_are_those_of_the_results() -> None:
    ((header, rows),) = ((header, rows) for header, rows in parse_tables("scan") if header != _GOALS)
    figures = [name.removesuffix(", ns per record") for name in header.split(" | ")[1:]]
    measured = {(row["figure"], row["load"]): f"{row['value']:.1f}" for row in stored_results("scan")}

    for load, *costs in rows:
        assert costs == [measured.get((figure, load), "-") for figure in figures], load


def test_costs_of_rules_on_the_page_are_those_of_the_results() -> None:
    ((_, rows),) = parse_tables("rules")

    assert rows == [
        [name, f"{found['ms_per_mb']:.2f}", f"{found['ms_per_mb'] * found['value_bytes'] / 1000:.1f}"]
        for name, found in stored_results("rules").items()
    ]


def test_medians_in_the_appendix_are_those_of_the_last_run() -> None:
    assert medians_table(json.loads((RESULTS / "raw.json").read_text())).strip() in APPENDIX.read_text()


def test_the_costliest_hostile_inputs_on_the_page_are_those_of_the_results() -> None:
    page = bounds.PAGE.read_text()
    known = {case.name for case in ALL_CASES}

    assert page[page.index(bounds.BEGIN) + len(bounds.BEGIN) + 1 : page.index(bounds.END)] == bounds.page_section(
        bounds.read_results()
    )
    assert set(bounds.read_results()) <= known
