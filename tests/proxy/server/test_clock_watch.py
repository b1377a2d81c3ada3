"""A measured clock offset is shown as a metric and a condition. Without a measurement, neither is shown."""

import pytest

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.cluster.cluster_clock import ClockOffset, NotMeasured
from sluicegate.proxy.server.clock_watch import ClockWatch, pause_after
from sluicegate.proxy.session.pass_through import ClusterLogin
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status


@pytest.fixture
def status() -> Status:
    status = Status()
    status.end(Condition.STARTING)
    return status


@pytest.fixture
def watch(status: Status) -> ClockWatch:
    return ClockWatch(Upstream(bootstrap=(HostPort("127.0.0.1", 1),)), None, ClusterLogin(), 7, status, lambda: 0)


def test_clock_offset_of_ten_seconds_raises_a_condition(watch: ClockWatch, status: Status) -> None:
    watch.learn(ClockOffset(leader=3, ahead_ms=7_200_000, within_ms=2))

    assert watch.offset_seconds == -7200
    assert [str(each) for each in status.active()] == [
        "clock_offset: the clock of the proxy's machine is 7200.0 s behind that of the active controller (node 3)"
    ]
    watch.learn(ClockOffset(leader=3, ahead_ms=-11_000, within_ms=2))
    assert watch.offset_seconds == 11
    assert "11.0 s ahead of that" in str(status.active()[0])
    watch.learn(ClockOffset(leader=3, ahead_ms=-9_999, within_ms=2))
    assert (watch.offset_seconds, status.active()) == (9.999, [])


def test_clock_offset_within_measurement_error_raises_no_condition(watch: ClockWatch, status: Status) -> None:
    watch.learn(ClockOffset(leader=3, ahead_ms=12_000, within_ms=3_000))

    assert (watch.offset_seconds, status.active()) == (-12, [])


@pytest.mark.parametrize("found", [None, NotMeasured("CLUSTER_AUTHORIZATION_FAILED")])
def test_unmeasured_clock_offset_has_no_value_and_no_condition(
    found: NotMeasured | None, watch: ClockWatch, status: Status
) -> None:
    watch.learn(ClockOffset(leader=3, ahead_ms=60_000, within_ms=2))
    watch.learn(found)

    assert watch.offset_seconds is None
    assert status.active() == []


def test_next_clock_measurement_waits_for_minutes_only_after_denied_access() -> None:
    assert pause_after(ClockOffset(leader=3, ahead_ms=0, within_ms=2)) == 5
    assert pause_after(None) == 5
    assert pause_after(NotMeasured("the quorum's leader does not report its time")) == 5
    assert pause_after(NotMeasured("CLUSTER_AUTHORIZATION_FAILED", is_denied=True)) == 300
