"""The metric families in /metrics become OTLP metrics with the same values."""

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from sluicegate.proxy.telemetry.metric_push import metrics_of

STARTED, NOW = 1_000, 2_000


def test_counter_is_exported_as_cumulative_sum_since_start() -> None:
    family = CounterMetricFamily("requests", "How many.", labels=("api",))
    family.add_metric(("Produce",), 3)

    (metric,) = metrics_of([family], STARTED, NOW)

    (point,) = metric.data.data_points
    assert (metric.name, metric.description, metric.unit, metric.data.is_monotonic) == (
        "requests",
        "How many.",
        "",
        True,
    )
    assert (point.start_time_unix_nano, point.time_unix_nano, point.value) == (STARTED, NOW, 3)
    assert point.attributes == {"api": "Produce"}


def test_unit_of_a_gauge_is_derived_from_its_name() -> None:
    family = GaugeMetricFamily("held_bytes_limit", "Memory.", 5)

    (metric,) = metrics_of([family], STARTED, NOW)

    (point,) = metric.data.data_points
    assert (metric.unit, point.value) == ("By", 5)


def test_histogram_is_exported_with_non_cumulative_bucket_counts() -> None:
    family = HistogramMetricFamily("wait_seconds", "How long.", labels=("api",))
    family.add_metric(("Fetch",), [("0.5", 2), ("1.0", 2), ("+Inf", 7)], 40.5)

    (metric,) = metrics_of([family], STARTED, NOW)

    (point,) = metric.data.data_points
    assert (metric.unit, list(point.explicit_bounds), list(point.bucket_counts)) == ("s", [0.5, 1.0], [2, 0, 5])
    assert (point.count, point.sum, point.attributes) == (7, 40.5, {"api": "Fetch"})


def test_metric_family_without_series_is_not_exported() -> None:
    assert list(metrics_of([CounterMetricFamily("none", "None.", labels=("api",))], STARTED, NOW)) == []


def test_label_with_invalid_unicode_is_escaped() -> None:
    family = CounterMetricFamily("violations", "How many.", labels=("client_id",))
    family.add_metric(("half \udc80",), 1)

    (metric,) = metrics_of([family], STARTED, NOW)

    assert metric.data.data_points[0].attributes == {"client_id": "half \\udc80"}
