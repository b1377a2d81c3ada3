"""Traffic per second is neither lost nor counted twice, whatever the clock and the event loop do."""

from sluicegate.proxy.live.flow_history import SECONDS, Flow, FlowHistory


def test_each_second_has_the_counts_since_the_previous_one() -> None:
    history = FlowHistory()
    for second, records in ((100, 5), (101, 5), (102, 25)):
        history.add(second, Flow(records=records))

    state = history.state(SECONDS)

    assert (state["begin"], state["records"]) == (100, [5, 0, 20])


def test_seconds_skipped_by_a_late_loop_are_zero() -> None:
    history = FlowHistory()
    history.add(100, Flow(rejected=1))
    history.add(104, Flow(rejected=7))

    assert history.state(SECONDS)["rejected"] == [1, 0, 0, 0, 6]


def test_flow_history_drops_oldest_seconds() -> None:
    history = FlowHistory()
    for second in range(3 * SECONDS):
        history.add(second, Flow(requests=second + 1))

    state = history.state(10 * SECONDS)

    assert state["begin"] == 2 * SECONDS
    assert state["requests"] == [1] * SECONDS


def test_long_pause_clears_flow_history() -> None:
    history = FlowHistory()
    for second in range(SECONDS):
        history.add(second, Flow(records=1000 * second))
    history.add(10 * SECONDS, Flow(records=1000 * (SECONDS - 1) + 7))

    assert history.state(SECONDS)["records"] == [0] * (SECONDS - 1) + [7]


def test_counts_are_added_to_newest_second_when_clock_is_set_back() -> None:
    history = FlowHistory()
    history.add(100, Flow(records=1))
    history.add(50, Flow(records=3))

    assert history.state(SECONDS) == {
        "begin": 100, "requests": [0], "records": [3], "size": [0], "rejected": [0], "rejected_records": [0],
        "observed": [0],
    }  # fmt: skip


def test_flow_history_can_return_only_newest_seconds() -> None:
    history = FlowHistory()
    for second in range(100, 110):
        history.add(second, Flow(records=second))

    assert history.state(3)["begin"] == 107
    assert len(history.state(3)["observed"]) == 3


def test_a_new_flow_history_is_empty() -> None:
    assert FlowHistory().state(SECONDS)["requests"] == []
