"""What the demo shows in a terminal: rows that keep their places, in any width, whatever clients call themselves."""

from rich.console import Console

from sluicegate.proxy.demo.sample_stream import SAMPLES
from sluicegate.proxy.demo.shown import Lines, LiveTable, shown_on
from sluicegate.proxy.demo.told import ELSE, Told
from sluicegate.proxy.reporting.metrics.counters import Counters
from tests.proxy.reporting.events.test_violation_writer import one

HOSTILE = "\x1b[2J\x1b[31m" + "x" * 300


def screen(told: Told, width: int) -> list[str]:
    console = Console(width=width, height=60, force_terminal=True, color_system=None, record=True, highlight=False)
    LiveTable(console, told).look(Counters())
    return console.export_text().splitlines()


def test_no_row_moves_when_rejections_come_and_none_is_wider_than_the_terminal() -> None:
    told = Told()
    for width in (60, 80, 120):
        before = screen(told, width)
        told.write(one(client_id=SAMPLES[1].client_id, topic="payments"))
        after = screen(told, width)

        assert len(before) == len(after)
        assert [line.split()[0] for line in after[1:5]] == [line.split()[0] for line in before[1:5]]
        assert max(map(len, after)) <= width


def test_at_80_columns_every_word_of_the_samples_is_whole() -> None:
    told = Told()
    told.write(one(client_id="legacy-billing", topic="payments"))

    shown = "\n".join(screen(told, 80))

    assert all(sample.client_id in shown and sample.topic in shown for sample in SAMPLES)
    assert "looks like nanoseconds: as milliseconds it is" in shown
    assert "…" not in shown


def test_what_clients_call_themselves_is_bounded_and_escaped() -> None:
    told = Told()
    for number in range(50):
        told.write(one(client_id=f"{number}{HOSTILE}"))

    rows = list(told.rows())
    assert len(rows) <= 2 * len(SAMPLES)
    assert (rows[-1].client_id, rows[-1].delivered) == (ELSE, None)
    assert sum(row.rejected for row in rows) == 50
    assert "\x1b[2J" not in "\n".join(screen(told, 80))
    assert len(told.new_rejections()) == 50
    assert told.new_rejections() == []


def test_a_pipe_gets_lines() -> None:
    told = Told()
    console = Console(width=80, force_terminal=False, record=True, highlight=False, soft_wrap=True)
    shown = shown_on(console, told)
    assert isinstance(shown, Lines)
    told.write(one(client_id="checkout", topic="payments"))

    shown.look(Counters(accepted_records=3, accepted_partitions=2))
    shown.end(Counters(accepted_records=3, accepted_partitions=2))

    lines = console.export_text().splitlines()
    assert lines[0] == "rejected checkout to payments-0: INVALID_TIMESTAMP, 1 of 99 records"
    assert lines[3:] == ["forwarded 3 records in 2 batches; rejected 0 batches"] * 2
