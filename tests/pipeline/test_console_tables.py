"""In a terminal of any width, every command's table shows all numbers completely."""

import io
import re
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from sluicegate.pipeline.commands.policy_file import owners_of
from sluicegate.pipeline.jobs.audit import report as audit_report
from sluicegate.pipeline.jobs.extract import report as extract_report
from sluicegate.pipeline.jobs.profile import report as profile_report
from sluicegate.pipeline.jobs.profile.invalid_timestamps import InvalidTimestampKind
from sluicegate.pipeline.jobs.repair import report as repair_report
from sluicegate.pipeline.jobs.replay import report as replay_report
from sluicegate.pipeline.jobs.verify import report as verify_report
from sluicegate.pipeline.jobs.violations import report as violations_report
from sluicegate.pipeline.report.console import ConsoleTable
from tests.config.reading import SMALLEST, load_text

NAME = "orders-of-the-northern-region.v2"
NANOSECONDS = 1_764_000_000_123_456_789
TIME = 1_764_000_000_123


def profile() -> ConsoleTable:
    damage = {each.value: 0 for each in InvalidTimestampKind} | {"seconds": 120_004_635, "future": 2**40}
    topic = {"records": 9_876_543_210, "null_keys": 120_000, "bytes": 98_765_432_101_234, "damage": damage}
    topic["damage_at_most"] = {"future": 2**41, "past": 0}
    return profile_report.console_table({"topics": {NAME: topic}})


def repair_row() -> dict[str, Any]:
    return {
        **{"topic": NAME, "producer_id": 9_007_199_254_740, "damage": "nanoseconds", "records": 4_635_120_000},
        **{"example_at": {"partition": 117, "offset": 123_456_789_012}, "example_before": NANOSECONDS},
        **{"example_after": TIME, "earliest_after": TIME - 1, "latest_after": TIME + 2, "reason": "", "solved": True},
    }


def repair() -> ConsoleTable:
    return repair_report.console_table([repair_row()], False)


def replay() -> ConsoleTable:
    place = {"topic": NAME, "to_topic": "orders", "kept_for": "timestamp_in_future"}
    at = {"example_at": {"partition": 117, "offset": 123_456_789_012}, "records": 4_635_120_000}
    back = place | at | {"corrected": True, "before": NANOSECONDS, "after": TIME}
    remaining = place | at | {"reason": "rule", "reported": "value.amount is 12345678901"}
    return replay_report.console_table({"applied": False, "replays": [back], "remaining": [remaining]})


def audit() -> ConsoleTable:
    row = {
        **{"verdict": "reject", "reason": "timestamp_in_future", "rule": None, "batches": 1_234_567},
        **{"records": 120_004_635, "bad_records": 98_765_432, "first_hour": TIME, "last_hour": TIME + 10**9},
    }
    return audit_report.console_table({"topics": {NAME: {"findings": [row]}}})


def violations() -> ConsoleTable:
    row = {
        **{"client_id": "billing-service-in-the-north", "topic": NAME, "reason": "timestamp_in_future"},
        **{"events": 1_234_567, "bad_records": 98_765_432, "late_events": 3},
        **{"first_window": "2026-11-24T09:05:00", "latest": "2026-11-24T10:15:00"},
    }
    return violations_report.console_table({"events": 1_234_567, "bad_lines": 0, "offenders": [row]})


def extract() -> ConsoleTable:
    counts = {"records": 9_876_543_210, "skipped": 120_004, "too_late": 37}
    return extract_report.console_table({"topics": {NAME: {**counts, "partitions": {"117": counts}}}})


def verify() -> ConsoleTable:
    counts = {"source": 9_876_543_210, "target": 9_876_543_211}
    about: Mapping[str, Any] = {"source": NAME, "target": f"{NAME}-clean", "records": counts}
    return verify_report.console_table({**about, "repairs": {"nanoseconds": 120_004_635}, "differences": {"other": 7}})


TABLES = (profile, repair, replay, audit, violations, extract, verify)


def printed_lines(table: ConsoleTable, width: int) -> list[str]:
    terminal = io.StringIO()
    Console(file=terminal, width=width, force_terminal=True, color_system=None).print(table)
    return terminal.getvalue().splitlines()


def numbers_in(text: str) -> list[str]:
    return re.findall(r"[0-9][0-9,.:-]*[0-9]|[0-9]", text)


@pytest.mark.parametrize("width", [60, 80, 100, 120, 240])
@pytest.mark.parametrize("table", [each() for each in TABLES], ids=[each.__name__ for each in TABLES])
def test_tables_truncate_no_number_and_fit_the_line_width(table: ConsoleTable, width: int) -> None:
    lines = printed_lines(table, width)

    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    there = {number for line in lines for number in numbers_in(line)}
    for row in table.rows:
        for head, cell in zip(table.heads, row, strict=True):
            message = f"{cell:,}" if isinstance(cell, int) else cell
            if cell != 0 and NAME not in message:  # a topic's name may be wrapped, and columns of zeros are dropped
                assert set(numbers_in(message)) <= there, (head, message, "\n".join(lines))


def test_zero_columns_are_dropped_and_listed_if_table_is_too_wide() -> None:
    narrow, wide = "\n".join(printed_lines(profile(), 100)), "\n".join(printed_lines(profile(), 240))

    assert ("Columns with 0 in all rows: microseconds, nanoseconds, zero, negative, implausible, past.") in re.sub(
        r"\s+", " ", narrow
    )
    assert "negative" in wide
    assert "0 in all rows" not in wide


def test_table_that_remains_too_wide_is_split_into_one_table_per_row() -> None:
    lines = printed_lines(repair(), 80)

    assert any(re.search(r"before +│ no date \(1764000000123456789\)", line) for line in lines), "\n".join(lines)


def test_a_replay_report_omits_remaining_records_if_there_are_none() -> None:
    counts = {"records": 5, "replayed": 5, "corrected": 0, "remaining": 0}
    summary = {"of": "dead letter", "applied": False, "topics": {NAME: counts}, "replays": [], "remaining": []}

    assert replay_report.first_lines({**summary, "remaining_by_earlier_runs": 0}) == [
        "5 of 5 dead letters would be written back, 0 of them corrected."
    ]


def test_the_section_of_a_topic_names_its_owner() -> None:
    text = "defaults: {owner: {team: platform}}\ntopics: [{match: or*, owner: {team: a, contact: '#a'}}]\n"
    owners = owners_of(load_text(SMALLEST + text).config, ["orders", "else"])
    topic: dict[str, Any] = {"findings": [], "producers": []}

    assert owners == {"orders": "a (#a)", "else": "platform"}
    assert owners_of(load_text(SMALLEST).config, ["orders"]) == {}
    assert audit_report._section("orders", topic | {"owner": owners["orders"]}).text == "Owner: a (#a)."
    assert audit_report._section("orders", topic).text == ""


def test_a_repair_shows_producers_without_an_id_in_words() -> None:
    row = {**repair_row(), "producer_id": -1}

    (cells,) = repair_report.console_table([row], False).rows
    plot = repair_report._by_producer([row, {**row, "producer_id": 7}])

    assert cells[1] == "none"
    assert "without a producer id" in plot.svg
    assert "producer 7" in plot.svg
    assert "producer -1" not in plot.svg
