"""The buffer that payloads are decompressed into."""

from sluicegate.protocol.records.codecs.plain_buffer import PlainBuffer


def test_room_is_used_again() -> None:
    plain = PlainBuffer()
    plain.room(100)[:3] = b"abc"

    assert plain.room(50)[:3] == b"abc"


def test_growing_keeps_what_is_there_and_a_very_large_one_is_given_back() -> None:
    plain = PlainBuffer()
    plain.room(5)[:5] = b"first"
    assert plain.room(32 << 20, 5)[:5] == b"first"

    plain.give_back()
    assert len(plain.room(1)) < 1 << 20
