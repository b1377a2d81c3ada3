"""What bounds on trial would reject: the same as an independent validation by each of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sluicegate.protocol.records.rehearsal import Rehearsal

NOW = 1_800_000_000_000
MIN, MAX = -(2**63), 2**63 - 1
TIMES = st.one_of(
    st.integers(MIN, MAX),
    st.integers(NOW - 200, NOW + 200),
    st.sampled_from([MIN, MAX, 0, -1, NOW - 2**63, NOW + 2**63 - 1 - 2**64 + 2**63]),
).filter(lambda time: MIN <= time <= MAX)
BOUNDS = st.one_of(st.integers(0, 150), st.sampled_from([MAX, MAX - 1]))


def java(value: int) -> int:
    """An int64 that wraps."""
    return (value + 2**63) % 2**64 - 2**63


def rejects(time: int, before: int, after: int) -> bool:
    """LogValidator.validateTimestamp (Kafka 4): `now - time > before || time - now > after`, in longs that wrap."""
    return java(NOW - time) > before or java(time - NOW) > after


@settings(max_examples=300)
@given(
    times=st.lists(TIMES, min_size=1, max_size=20),
    base=TIMES,
    before=BOUNDS,
    after=BOUNDS,
    befores=st.lists(BOUNDS, max_size=3),
    afters=st.lists(BOUNDS, max_size=3),
)
def test_each_bound_counts_what_it_would_reject(
    times: list[int], base: int, before: int, after: int, befores: list[int], afters: list[int]
) -> None:
    rehearsal = Rehearsal(before, after, befores, afters)
    rehearsal.begin(NOW, base)

    found = [rehearsal.rejects((time - base) % 2**64) for time in times]

    assert found == [rejects(time, before, after) for time in times]
    assert rehearsal.counts == tuple(
        [sum(rejects(time, bound, MAX) and java(NOW - time) > bound for time in times) for bound in befores]
        + [sum(java(time - NOW) > bound for time in times) for bound in afters]
    )


def test_how_far_ahead_good_ones_are_is_kept() -> None:
    rehearsal = Rehearsal(100, 100, [], [10])
    rehearsal.begin(NOW, NOW)

    for ahead in (20, 90, 150, -90):
        rehearsal.rejects(ahead % 2**64)

    assert rehearsal.ahead_ms == 90
    assert rehearsal.counts == (3,)
