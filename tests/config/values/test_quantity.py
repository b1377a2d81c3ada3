"""Numbers are parsed and shown with and without units."""

import pytest

from sluicegate.config.values.address import HostPort
from sluicegate.config.values.quantity import duration_text
from tests.config.reading import SMALLEST, load_text, problems_of_text


@pytest.mark.parametrize(
    ("written", "milliseconds"),
    [
        ("3600000", 3_600_000),
        ("1h", 3_600_000),
        ("1.5h", 5_400_000),
        ("1 d", 86_400_000),
        ("7d", 604_800_000),
        ("5m", 300_000),
        ("5min", 300_000),
        ("10s", 10_000),
        ("250ms", 250),
        ("1_000", 1000),
        ("9223372036854775807", 9223372036854775807),
    ],
)
def test_timestamp_bounds_accept_milliseconds_or_a_unit(written: str, milliseconds: int) -> None:
    assert load_text(
        SMALLEST + f"defaults: {{message.timestamp.before.max.ms: {written}}}"
    ).config.defaults.before_max_ms == (milliseconds)


@pytest.mark.parametrize(
    ("written", "seconds"), [("30", 30), ("1.5", 1.5), ("2min", 120), ("500ms", 0.5), ("1h", 3600), ("'5s'", 5)]
)
def test_timeouts_accept_seconds_or_a_unit(written: str, seconds: float) -> None:
    assert load_text(SMALLEST + f"drain_timeout_seconds: {written}").config.drain_timeout_seconds == seconds


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("104857600", 104_857_600),
        ("100MB", 100_000_000),
        ("100 MiB", 104_857_600),
        ("64KiB", 65_536),
        ("64kB", 64_000),
        ("64KB", 64_000),
        ("1GiB", 1 << 30),
        ("1.5MB", 1_500_000),
        ("2000B", 2000),
    ],
)
def test_sizes_accept_bytes_or_a_unit(written: str, size: int) -> None:
    text = SMALLEST + f"limits: {{max_decompressed_bytes: {written}}}"

    assert load_text(text).config.limits.max_decompressed_bytes == size
    assert load_text(SMALLEST, SLUICEGATE__LIMITS__MAX_DECOMPRESSED_BYTES=written).config == load_text(text).config


@pytest.mark.parametrize(
    "written",
    [
        "1x",
        "h",
        "1 h 2",
        "0123",
        "1e3",
        "0x10",
        "1.5ms",
        ".inf",
        "nan",
        "-1h",
        "1,000",
        "true",
        "9" * 50,
        "1" * 39 + "d",
    ],
)
def test_rejects_invalid_timestamp_bounds(written: str) -> None:
    (problem,) = problems_of_text(SMALLEST + f"defaults: {{message.timestamp.before.max.ms: '{written}'}}")

    assert "expected milliseconds or a duration with a unit" in problem


@pytest.mark.parametrize("written", ["0", "-5", "1e999", ".inf", "100000000d", "0.0001"])
def test_rejects_invalid_timeouts(written: str) -> None:
    assert len(problems_of_text(SMALLEST + f"drain_timeout_seconds: {written}")) == 1


def test_bootstrap_addresses_may_be_one_comma_separated_text() -> None:
    text = SMALLEST.replace("['h:1']", "'a:1, [::1]:2,'")

    assert load_text(text).config.upstream.bootstrap == (HostPort("a", 1), HostPort("::1", 2))
    both = load_text(SMALLEST, SLUICEGATE__UPSTREAM__BOOTSTRAP="[::1]:9092,b:2").config.upstream.bootstrap
    assert both == (HostPort("::1", 9092), HostPort("b", 2))


def test_list_items_from_the_environment_keep_their_order() -> None:
    variables = {f"SLUICEGATE__TOPICS__{i}__MATCH": f"t{i}" for i in range(12)}

    assert [topic.match for topic in load_text(SMALLEST, **variables).config.topics] == [f"t{i}" for i in range(12)]


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (340, "340 ms"),
        (5_500, "5 s 500 ms"),
        (60_000, "1 min"),
        (7_230_000, "2 h"),  # plus 30 s, which are omitted because only the two largest units are shown
        (7_500_000, "2 h 5 min"),
        (86_400_000, "1 d"),
        (2**63 - 1, "106751991167 d 7 h"),
    ],
)
def test_duration_is_formatted_in_its_two_largest_units(milliseconds: int, text: str) -> None:
    assert duration_text(milliseconds) == text
