"""A frame header is accepted if the lz4 library accepts it and brokers read such frames."""

import random
import struct

import lz4.frame
import pytest

from sluicegate.protocol.records.codecs.codec import DamagedPayload, OddPayload, PlainBuffer
from sluicegate.protocol.records.codecs.lz4_blocks import Lz4Blocks

_END_MARK = bytes(4)


def _opens(head: bytes, magic: int = 2) -> bool:
    """Return whether an empty frame after this header is read to its end."""
    blocks = Lz4Blocks(memoryview(head + _END_MARK + _END_MARK), PlainBuffer(), magic)
    try:
        next(blocks)
    except (StopIteration, OddPayload):  # bytes follow, or the content size is wrong
        return True
    except DamagedPayload:
        return False
    raise AssertionError("an empty frame has no block")


def _library_takes(head: bytes) -> bool:
    try:
        lz4.frame.get_frame_info(head)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("code", [4, 5, 6, 7])
@pytest.mark.parametrize("flags", [0x60, 0x64, 0x68, 0x6C, 0x70, 0x7C])
def test_lz4_frame_opens_only_with_the_header_checksum_of_the_library(flags: int, code: int) -> None:
    chance = random.Random(flags + code)
    for _ in range(5):
        size = struct.pack("<Q", chance.randrange(1 << chance.randrange(1, 60))) if flags & 0x08 else b""
        heads = [b"\x04\x22\x4d\x18" + bytes((flags, code << 4)) + size + bytes((checksum,)) for checksum in range(256)]

        taken = [head for head in heads if _opens(head)]

        assert len(taken) == 1
        assert taken == [head for head in heads if _library_takes(head)]
        assert all(_opens(head, magic=0) for head in heads)  # KAFKA-3160


@pytest.mark.parametrize(
    ("flags", "descriptor"),
    [(0x40, 0x40), (0x61, 0x40), (0x62, 0x40), (0x20, 0x40), (0xE0, 0x40), (0x60, 0x30), (0x60, 0x41), (0x60, 0xC0)],
)
def test_rejects_lz4_frames_that_brokers_cannot_read(flags: int, descriptor: int) -> None:
    """Rejects linked blocks, a dictionary, another version, reserved bits, and other block sizes."""
    heads = [b"\x04\x22\x4d\x18" + bytes((flags, descriptor, checksum)) for checksum in range(256)]

    assert not any(_opens(head) or _opens(head, magic=0) for head in heads)


def test_truncated_lz4_frame_header_is_damaged() -> None:
    whole = lz4.frame.compress(b"content", block_linked=False, store_size=True)
    for size in range(16):
        with pytest.raises(DamagedPayload):
            next(Lz4Blocks(memoryview(whole[:size]), PlainBuffer(), 2))
