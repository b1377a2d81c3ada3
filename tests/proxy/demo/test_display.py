"""The demo's table keeps its height in a terminal of any width, with any client ids."""

from rich.console import Console

from sluicegate.proxy.demo.display import LineDisplay, LiveTable, display_on
from sluicegate.proxy.demo.results import OTHER_CLIENTS, DemoResults
from sluicegate.proxy.demo.sample_stream import SAMPLES
from sluicegate.proxy.reporting.metrics.counters import Counters
from tests.proxy.reporting.events.test_violation_writer import one_violation

HOSTILE = "\x1b[2J\x1b[31m" + "x" * 300


def screen_lines(results: DemoResults, width: int) -> list[str]:
    console = Console(width=width, height=60, force_terminal=True, color_system=None, record=True, highlight=False)
    LiveTable(console, results).update(Counters())
    return console.export_text().splitlines()


def test_rejections_keep_row_order_and_rows_fit_terminal() -> None:
    results = DemoResults()
    for width in (60, 80, 120):
        before = screen_lines(results, width)
        results.write(one_violation(client_id=SAMPLES[1].client_id, topic="payments"))
        after = screen_lines(results, width)

        assert len(before) == len(after)
        assert [line.split()[0] for line in after[1:5]] == [line.split()[0] for line in before[1:5]]
        assert max(map(len, after)) <= width


def test_sample_producers_fit_in_80_columns_untruncated() -> None:
    results = DemoResults()
    results.write(one_violation(client_id="legacy-billing", topic="payments"))

    shown = "\n".join(screen_lines(results, 80))

    assert all(sample.client_id in shown and sample.topic in shown for sample in SAMPLES)
    assert "looks like nanoseconds: as milliseconds it is" in shown
    assert "…" not in shown


def test_displayed_client_ids_are_truncated_and_escaped() -> None:
    results = DemoResults()
    for number in range(50):
        results.write(one_violation(client_id=f"{number}{HOSTILE}"))

    rows = list(results.rows())
    assert len(rows) <= 2 * len(SAMPLES)
    assert (rows[-1].client_id, rows[-1].delivered) == (OTHER_CLIENTS, None)
    assert sum(row.rejected for row in rows) == 50
    assert "\x1b[2J" not in "\n".join(screen_lines(results, 80))
    assert len(results.new_rejections()) == 50
    assert results.new_rejections() == []


def test_the_demo_prints_lines_to_a_pipe() -> None:
    results = DemoResults()
    console = Console(width=80, force_terminal=False, record=True, highlight=False, soft_wrap=True)
    display = display_on(console, results)
    assert isinstance(display, LineDisplay)
    results.write(one_violation(client_id="checkout", topic="payments"))

    display.update(Counters(accepted_records=3, accepted_partitions=2))
    display.end(Counters(accepted_records=3, accepted_partitions=2))

    lines = console.export_text().splitlines()
    assert lines[0] == "rejected checkout to payments-0: INVALID_TIMESTAMP, 1 of 99 records"
    assert lines[3:] == ["forwarded 3 records in 2 batches; rejected 0 batches"] * 2
