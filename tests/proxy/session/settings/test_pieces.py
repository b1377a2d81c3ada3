"""The pieces of a message together are the message."""

from hypothesis import given
from hypothesis import strategies as st

from sluicegate.proxy.session.settings.pieces import in_pieces

MIB = 1 << 20


@given(st.lists(st.sampled_from([b"", b"a", b"bc" * 1000, b"d" * (MIB - 1), b"e" * (2 * MIB + 3)]), max_size=6))
def test_pieces_contain_all_bytes_of_the_parts_in_order(parts: list[bytes]) -> None:
    calls: list[None] = []

    pieces = in_pieces(map(memoryview, parts), lambda: calls.append(None))

    whole = b"".join(parts)
    assert b"".join(pieces) == whole
    assert all(0 < len(piece) < 2 * MIB for piece in pieces)
    assert len(pieces) <= len(whole) // MIB + 1
    assert len(calls) == sum(len(piece) >= MIB for piece in pieces)
