"""How a page's output is compared with the real output."""

from tests.docs.shown import shows

OUTPUT = "first line\nsecond 17 line\nthird\n"


def test_a_page_may_show_a_part() -> None:
    assert shows("second 17 line\n", OUTPUT)
    assert shows("first line\nsecond 17 line\nthird", OUTPUT)
    assert shows("second … line\nthird\n", OUTPUT)
    assert shows("first line\n…\nthird\n", OUTPUT)
    assert shows("…\nthird\n", OUTPUT)


def test_other_output_does_not_match() -> None:
    assert not shows("second\n", OUTPUT)
    assert not shows("econd 17 line\n", OUTPUT)
    assert not shows("third\nsecond 17 line\n", OUTPUT)
    assert not shows("second 1. line\n", OUTPUT)
    assert not shows("first … line\n", OUTPUT)
