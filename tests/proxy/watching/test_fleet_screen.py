"""`sluicegate top --fleet` shows all proxies as they announce themselves."""

import json
from dataclasses import replace

from rich.console import Console

from sluicegate.proxy.watching.fleet_screen import fleet_screen
from tests.proxy.state.test_presence import NOW, ONE, TWO, stored_record, view_of


def test_screen_shows_findings_first_then_rates_and_a_sum_without_stale_proxies() -> None:
    later = replace(ONE, time_ms=NOW + 5000, counters={**ONE.counters, "accepted_records": 10**10 + 100})
    hostile = replace(TWO, name="gate-2\x1b[2J", version="0.2.0", time_ms=NOW + 5000, counters={"connections": 3})
    stale = replace(ONE, name="gate-3", instance="c", time_ms=NOW - 20_000)
    view = view_of(*map(stored_record, (ONE, stale, hostile, later)), now_ms=NOW + 6000)
    console = Console(width=200, highlight=False)

    with console.capture() as captured:
        console.print(fleet_screen(json.loads(json.dumps(view.as_json()))))

    lines = captured.get().splitlines()
    assert lines[0].startswith("versions_differ: 2 versions: 0.1.0: gate-1")
    assert lines[1].startswith("3 proxies at 2027-01-15T08:00:06Z")
    rows = {line.split()[0]: line.split()[1:] for line in lines[3:]}
    of_one = ["0", "20.0", "0", "1,200", "1", "s", "needs", "attention"]
    assert rows["gate-1.example.com:19092"] == [*of_one, "(enforcement_suspended,", "registry_unreachable)"]
    assert rows["gate-2\\x1b[2J"] == ["-", "-", "-", "3", "1", "s", "serving"]
    assert rows["gate-3"][:7] == ["-", "-", "-", "-", "26", "s", "stale"]
    assert rows["all"] == ["0", "20.0", "0", "1,203", "without", "1", "stale"]


def test_names_and_states_fit_into_eighty_columns() -> None:
    console = Console(width=80, highlight=False)
    named = replace(TWO, name="10.100.200.30:19092", state="needs attention")
    with console.capture() as captured:
        console.print(fleet_screen(view_of(stored_record(named)).as_json()))

    assert captured.get().splitlines()[-1].split() == [
        named.name,
        "-",
        "-",
        "-",
        "1,200",
        "0",
        "s",
        "needs",
        "attention",
    ]
