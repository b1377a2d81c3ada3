"""Text from a peer is made safe before it is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.proxy.session.client.client_text import MAX_CHARACTERS, client_text
from tests.wire.cost import cpu_seconds_of_call


@pytest.mark.parametrize(
    "text",
    [
        "",
        "billing-1",
        "日本語 é",
        "👩‍👩‍👧",
        "a\u200cb",
        "nbsp\u00a0here",
        "a" * MAX_CHARACTERS,
        "topic._-9" * 20,
        r"back\slash",
    ],
)
def test_printable_text_stays_unchanged(text: str) -> None:
    assert client_text(text) == text
    assert client_text(text.encode()) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("two\r\nlines", r"two\x0d\x0alines"),
        ("nul\0 del\x7f csi\x9b", r"nul\x00 del\x7f csi\x9b"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("abc\u202edcba\u2066", r"abc\u202edcba\u2066"),
        ("lone \ud800", r"lone \ud800"),
    ],
)
def test_characters_that_could_forge_a_line_or_reorder_text_are_escaped(text: str, shown: str) -> None:
    assert client_text(text) == shown


@pytest.mark.parametrize(("said", "end"), [("x" * 500_000, "… (500000 characters)"), (b"x" * 2000, "… (2000 bytes)")])
def test_long_text_is_truncated_with_its_original_length(said: str | bytes, end: str) -> None:
    shown = client_text(said)

    assert len(shown) == MAX_CHARACTERS
    assert shown.startswith("xxx")
    assert shown.endswith(end)


@given(st.text(st.characters(), max_size=600) | st.binary(max_size=2000))
def test_client_text_is_always_encodable_short_and_on_one_line(said: str | bytes) -> None:
    shown = client_text(said)

    assert len(shown) <= MAX_CHARACTERS
    assert shown.encode().decode() == shown
    assert len(shown.splitlines()) <= 1


def test_cpu_time_for_long_text_depends_only_on_the_shown_part() -> None:
    assert cpu_seconds_of_call(lambda: client_text(LONG)) < 100 * cpu_seconds_of_call(lambda: client_text(LONG[:1024]))


LONG = b"\xff" * 10_000_000
