"""A soak's samples distinguish a machine that slows down from a proxy that slows down."""

from collections.abc import Callable

from tests.soak.samples import ADDED, DIRECT_WAIT, MEMORY, MEMORY_AT_THE_END, WAIT, Sample, Samples

_SECONDS = range(3600)


def test_a_machine_that_slows_down_is_not_counted_as_the_proxy() -> None:
    slopes = _samples(wait=lambda second: 8 + second / 36, direct=lambda second: 5 + second / 36).slopes()

    assert round(slopes[WAIT].per_hour) == round(slopes[DIRECT_WAIT].per_hour) == 100
    assert abs(slopes[ADDED].per_hour) < 0.01


def test_a_proxy_that_slows_down_is_noticed() -> None:
    slopes = _samples(wait=lambda second: 8 + second / 36, direct=lambda _: 5.0).slopes()

    assert round(slopes[ADDED].per_hour) == 100
    assert slopes[ADDED].is_beyond_doubt_above > 99


def test_occasional_delays_by_faults_are_not_growth() -> None:
    slopes = _samples(wait=lambda second: 1000.0 if second % 10 > 6 else 8.0, direct=lambda _: 5.0).slopes()

    assert slopes[ADDED].per_hour == 0


def test_slopes_ignore_the_beginning_of_a_soak() -> None:
    samples = _samples(wait=lambda _: 8.0, direct=lambda _: 5.0)
    samples.memory_mb = [Sample(second, min(100.0, second)) for second in _SECONDS]

    assert samples.slopes()[MEMORY].per_hour == 0


def test_memory_that_levels_off_has_no_slope_at_the_end() -> None:
    samples = _samples(wait=lambda _: 8.0, direct=lambda _: 5.0)
    samples.memory_mb = [Sample(second, min(2400.0, second)) for second in _SECONDS]

    slopes = samples.slopes()

    assert slopes[MEMORY].per_hour > 1000
    assert slopes[MEMORY_AT_THE_END].per_hour == 0


def _samples(wait: Callable[[int], float], direct: Callable[[int], float]) -> Samples:
    flat = [Sample(second, 50.0) for second in _SECONDS]
    return Samples(
        flat, flat, [Sample(second, wait(second)) for second in _SECONDS], [Sample(s, direct(s)) for s in _SECONDS]
    )
