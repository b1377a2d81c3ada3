"""A slope and its error agree with numpy's least squares."""

import numpy as np
import pytest

from tests.soak.slope import slope_of


def test_points_on_a_line_have_its_slope_and_no_error() -> None:
    found = slope_of([0, 1800, 3600], [5, 6, 7])

    assert (found.per_hour, found.error) == (pytest.approx(2), pytest.approx(0, abs=1e-9))


def test_slope_and_error_equal_those_of_numpy() -> None:
    chance = np.random.default_rng(5)
    seconds = np.arange(500.0)
    values = 3 * seconds / 3600 + chance.normal(0, 2, 500)

    found = slope_of(seconds.tolist(), values.tolist())

    (slope, _), covariance = np.polyfit(seconds / 3600, values, 1, cov=True)
    assert found.per_hour == pytest.approx(slope)
    assert found.error == pytest.approx(np.sqrt(covariance[0, 0]))


def test_two_samples_have_no_slope() -> None:
    with pytest.raises(ValueError, match="2 samples"):
        slope_of([0, 1], [1, 2])
