"""A page's output is compared correctly with the real output."""

from tests.docs.shown import is_shown_in

OUTPUT = "first line\nsecond 17 line\nthird\n"


def test_output_with_lines_left_out_matches() -> None:
    assert is_shown_in("second 17 line\n", OUTPUT)
    assert is_shown_in("first line\nsecond 17 line\nthird", OUTPUT)
    assert is_shown_in("second … line\nthird\n", OUTPUT)
    assert is_shown_in("first line\n…\nthird\n", OUTPUT)
    assert is_shown_in("…\nthird\n", OUTPUT)


def test_output_that_differs_is_not_shown_output() -> None:
    assert not is_shown_in("second\n", OUTPUT)
    assert not is_shown_in("econd 17 line\n", OUTPUT)
    assert not is_shown_in("third\nsecond 17 line\n", OUTPUT)
    assert not is_shown_in("second 1. line\n", OUTPUT)
    assert not is_shown_in("first … line\n", OUTPUT)
