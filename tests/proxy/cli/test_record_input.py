"""The command line's options describe a record."""

from pathlib import Path

import pytest

from sluicegate.protocol.records.writing import NewRecord
from sluicegate.proxy.cli.record_input import BadGivenRecord, given_record, time_of

NOW = 1_800_000_000_000
HOUR = 3_600_000


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("-1", -1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("now", NOW),
        ("now+2h", NOW + 2 * HOUR),
        ("now - 1.5h", NOW - HOUR * 3 // 2),
        ("now+500", NOW + 500),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T02:00:00.001+02:00", 1),
        ("1970-01-02", 86_400_000),
    ],
)
def test_a_timestamp_option_is_milliseconds_an_iso_time_or_a_distance(text: str, time: int) -> None:
    assert time_of(text, NOW) == time


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("yesterday", "expected milliseconds, a time such as 2026-11-22T10:00:00Z, or now+1h; found 'yesterday'"),
        ("now+soon", "expected milliseconds or a duration with a unit"),
        ("9223372036854775808", "expected at most 64 bits"),
        ("now+9223372036854775807", "expected at most 64 bits"),
        ("", "expected milliseconds"),
    ],
)
def test_an_invalid_timestamp_option_is_an_error(text: str, words: str) -> None:
    with pytest.raises(BadGivenRecord) as caught:
        time_of(text, NOW)
    assert str(caught.value).startswith("--timestamp: ")
    assert words in str(caught.value)


def test_missing_record_options_are_null_and_empty_ones_are_empty(tmp_path: Path) -> None:
    value = tmp_path / "value"
    value.write_bytes(b"\x00\xff")

    assert given_record(None, None, None, (), "1", NOW, 100) == NewRecord(1, None, None, ())
    assert given_record("", "", None, ["a=", "a=b=c"], "1", NOW, 100) == NewRecord(
        1, b"", b"", ((b"a", b""), (b"a", b"b=c"))
    )
    assert given_record(None, None, value, (), "1", NOW, 100).value == b"\x00\xff"


def test_a_record_value_has_one_source_and_a_maximum_size(tmp_path: Path) -> None:
    value = tmp_path / "value"
    value.write_bytes(bytes(101))

    for (key, text, file, headers), words in (
        ((None, "x", value, ()), "--value and --value-file cannot be combined"),
        ((None, None, value, ()), "has more than limits.max_frame_bytes (100) bytes"),
        ((None, None, tmp_path / "none", ()), "cannot be read: No such file or directory"),
        ((None, None, None, ["x"]), "--header: expected NAME=VALUE, found 'x'"),
    ):
        with pytest.raises(BadGivenRecord) as caught:
            given_record(key, text, file, headers, "1", NOW, 100)
        assert words in str(caught.value)
