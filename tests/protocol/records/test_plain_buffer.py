"""The buffer that payloads are decompressed into."""

import pytest

from protocol.records.plain_buffer import OverLimit, PlainBuffer


def test_pieces_follow_each_other_and_the_next_payload_overwrites_them() -> None:
    plain = PlainBuffer()
    plain.begin(100)
    plain.add(b"abc")
    plain.room(3)[:3] = b"def"
    plain.wrote(3)
    assert plain.contents() == b"abcdef"

    plain.begin(100)
    plain.add(b"x")
    assert plain.contents() == b"x"


def test_beyond_the_limit_it_keeps_what_is_allowed() -> None:
    plain = PlainBuffer()
    plain.begin(4)
    plain.add(b"abc")

    with pytest.raises(OverLimit):
        plain.add(b"de")
    assert plain.contents() == b"abc"

    plain.room(2)[:2] = b"de"
    with pytest.raises(OverLimit):
        plain.wrote(2)
    assert plain.contents() == b"abcd"


def test_a_step_asks_for_one_byte_more_than_is_allowed() -> None:
    plain = PlainBuffer()
    plain.begin(10)
    plain.add(b"abc")

    assert plain.step(100) == 8
    assert plain.step(5) == 5


def test_growing_keeps_what_is_there_and_a_very_large_one_is_let_go() -> None:
    plain = PlainBuffer()
    plain.begin(64 << 20)
    plain.add(b"first")
    assert len(plain.room(32 << 20)) >= 32 << 20
    assert plain.contents() == b"first"

    plain.begin(10)
    assert len(plain.room(1)) < 1 << 20
