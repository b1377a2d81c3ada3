"""Returns the metrics of all proxies with the same presence topic."""

from dataclasses import replace

from prometheus_client.core import Metric

from sluicegate.proxy.state.fleet_view import FleetView
from sluicegate.proxy.state.presence_metrics import MOST_PROXIES, presence_metrics
from sluicegate.proxy.state.topic_description import TopicUnavailable
from tests.proxy.state.test_presence import NOW, ONE, TWO, stored_record, view_of

OTHER = replace(TWO, version="0.2.0", policies="ba9876543210")


def metrics_of(view: FleetView) -> dict[str, Metric]:
    return {each.name.removeprefix("sluicegate_presence_"): each for each in presence_metrics(lambda: view)}


def values(metric: Metric) -> dict[str, float]:
    """Return each value by its labels' values."""
    return {" ".join(sample.labels.values()): sample.value for sample in metric.samples}


def test_each_proxy_has_metrics_and_a_stale_one_its_age() -> None:
    stale = replace(OTHER, time_ms=NOW - 20_000)
    found = metrics_of(view_of(stored_record(ONE, NOW - 1000), stored_record(stale)))

    one, two = ONE.name, TWO.name
    assert values(found["readable"]) == {"": 1}
    assert values(found["proxies"]) == {"serving": 0, "needs attention": 1, "not serving": 0, "stale": 1}
    assert values(found["age_seconds"]) == {one: 1, two: 20}
    assert values(found["serving"]) == {one: 1, two: 0}
    assert values(found["clock_offset_seconds"]) == {one: 1, two: 0}
    assert values(found["info"]) == {f"{one} 0.1.0 0123456789ab": 1, f"{two} 0.2.0 ba9876543210": 1}
    assert values(found["connections"]) == {one: 1200, two: 1200}
    assert values(found["violations"]) == {one: 10**6, two: 10**6}


def test_each_finding_is_counted() -> None:
    again = replace(ONE, instance="c" * 32)
    ahead = replace(OTHER, time_ms=NOW + 60_000)
    records = [stored_record(each, NOW) for each in (ONE, again, ahead, ONE, again)]

    found = metrics_of(view_of(*records))

    kinds = ("clock_off", "name_used_twice", "policies_differ", "versions_differ")
    assert values(found["findings"]) == dict.fromkeys(kinds, 1)
    assert values(metrics_of(view_of(stored_record(ONE)))["findings"]) == dict.fromkeys(kinds, 0)


def test_series_per_proxy_are_bounded_while_totals_include_all_proxies() -> None:
    many = [
        stored_record(replace(ONE, name=f"gate-{number:05}", instance=f"{number}"))
        for number in range(MOST_PROXIES + 5)
    ]

    found = metrics_of(view_of(*many))

    assert max(len(each.samples) for each in found.values()) == MOST_PROXIES
    assert values(found["proxies"])["needs attention"] == MOST_PROXIES + 5


def test_unreadable_presence_topic_is_reported_as_a_metric() -> None:
    def fail() -> FleetView:
        raise TopicUnavailable("Unknown topic")

    (found,) = presence_metrics(fail)
    assert (found.name, values(found)) == ("sluicegate_presence_readable", {"": 0})
