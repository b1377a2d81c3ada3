"""In the live view, a stored violation is small, and contains the contents of at most one record."""

import json

from sluicegate.proxy.live.live_view import MAX_VIOLATIONS, LiveView
from sluicegate.proxy.reporting.events.violation_event import event_of
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.validation.rules.rule import Mode
from tests.proxy.live.events import NOW, SECRET, rejected_event


def test_keeps_newest_violations_with_one_record_each() -> None:
    view = LiveView(Counters(), None, NOW)
    for number in range(MAX_VIOLATIONS + 7):
        view.write(rejected_event(f"client-{number}"))

    assert len(view.violations) == MAX_VIOLATIONS
    numbers = [number for number, _, _ in view.violations]
    assert numbers == list(range(8, MAX_VIOLATIONS + 8))
    event = event_of(view.violations[-1][2])
    assert (event["bad_records"], len(event["samples"])) == (5, 1)
    assert json.dumps(event).count(SECRET.decode()) == 2  # the key and the value of a topic with `samples: true`


def test_observed_batches_do_not_count_as_rejected() -> None:
    view = LiveView(Counters(), None, NOW)
    for mode in Mode:
        view.write(rejected_event(mode=mode))

    flow = view.flow()

    assert (flow.rejected, flow.rejected_records, flow.observed) == (2, 10, 4), "observed, rehearsed, marked, copied"
