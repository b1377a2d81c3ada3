"""Log start offsets are valid for one second."""

from sluicegate.proxy.responses.log_starts import LogStarts


def test_log_start_offset_expires_after_one_second() -> None:
    starts = LogStarts()
    assert starts.offset_of("t", 0, 1000) is None

    starts.learn("t", 0, 42, 1000)

    assert starts.offset_of("t", 0, 1000) == starts.offset_of("t", 0, 1999) == 42
    assert starts.offset_of("t", 0, 2000) is None
    assert starts.offset_of("t", 1, 1000) is None


def test_log_start_offsets_expire_if_the_clock_goes_back() -> None:
    starts = LogStarts()
    starts.learn("t", 0, 42, 1000)

    assert starts.offset_of("t", 0, 999) is None


def test_remembered_log_start_offsets_are_bounded() -> None:
    starts = LogStarts()
    for partition in range(10_000):
        starts.learn("t", partition, partition, 0)
    starts.learn("t", 0, 0, 0)
    starts.learn("t", 10_000, 10_000, 0)

    assert starts.offset_of("t", 1, 0) is None, "the oldest entry"
    assert starts.offset_of("t", 0, 0) == 0
    assert starts.offset_of("t", 2, 0) == 2
    assert starts.offset_of("t", 10_000, 0) == 10_000


def test_log_start_offset_of_invalid_topic_name_is_not_stored() -> None:
    starts = LogStarts()
    starts.learn("x" * 20_000, 0, 7, 1000)

    assert starts.offset_of("x" * 20_000, 0, 1000) is None
