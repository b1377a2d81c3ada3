"""Log start offsets are valid for a second."""

from sluicegate.proxy.responses.log_starts import LogStarts


def test_an_offset_is_known_for_a_second_after_it_was_told() -> None:
    starts = LogStarts()
    assert starts.of("t", 0, 1000) is None

    starts.learn("t", 0, 42, 1000)

    assert starts.of("t", 0, 1000) == starts.of("t", 0, 1999) == 42
    assert starts.of("t", 0, 2000) is None
    assert starts.of("t", 1, 1000) is None


def test_a_clock_that_goes_backwards_makes_nobody_believe_for_ever() -> None:
    starts = LogStarts()
    starts.learn("t", 0, 42, 1000)

    assert starts.of("t", 0, 999) is None


def test_it_forgets_rather_than_grow() -> None:
    starts = LogStarts()
    for partition in range(10_000):
        starts.learn("t", partition, partition, 0)
    starts.learn("t", 0, 0, 0)
    starts.learn("t", 10_000, 10_000, 0)

    assert starts.of("t", 1, 0) is None, "told longest ago"
    assert starts.of("t", 0, 0) == 0
    assert starts.of("t", 2, 0) == 2
    assert starts.of("t", 10_000, 0) == 10_000


def test_names_that_no_topic_can_have_are_not_remembered() -> None:
    starts = LogStarts()
    starts.learn("x" * 20_000, 0, 7, 1000)

    assert starts.of("x" * 20_000, 0, 1000) is None
