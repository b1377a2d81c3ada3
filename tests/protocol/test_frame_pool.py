"""The pool of frame buffers reuses buffers of the right size that have no views, and is bounded."""

from collections.abc import Callable

import pytest

from sluicegate.protocol.frame_pool import FramePool

KIB, MIB = 1 << 10, 1 << 20


def test_frame_pool_reuses_buffer_for_its_size_class() -> None:
    pool = FramePool()
    first = pool.take(100 * KIB, 100 * KIB)
    pool.recycle(first)

    for size in (100 * KIB, 127 * KIB, 70 * KIB):
        again = pool.take(size, 8)
        assert again is first
        assert len(again) == size
        pool.recycle(again)
    assert pool.take(200 * KIB, 8) is not first


def test_frame_pool_allocates_by_available_bytes_not_stated_size() -> None:
    assert len(FramePool().take(100 * MIB, at_hand=8)) == 4 * KIB
    assert len(FramePool().take(100 * MIB, at_hand=32 * KIB)) == 64 * KIB


def test_frame_pool_does_not_reuse_buffer_with_exported_view() -> None:
    pool = FramePool()
    frame = pool.take(100 * KIB, 100 * KIB)
    view = memoryview(frame)
    pool.recycle(frame)

    assert pool.take(100 * KIB, 8) is not frame
    assert len(view) == 100 * KIB


@pytest.mark.parametrize("size", [1, 10 * KIB, 5 * MIB])
def test_frame_pool_keeps_no_small_or_very_large_buffers(size: int) -> None:
    pool = FramePool()
    frame = bytearray(size)
    pool.recycle(frame)

    assert pool.take(size, 8) is not frame


def test_frame_pool_keeps_at_most_eight_buffers_of_a_size() -> None:
    pool = FramePool()
    given = [bytearray(MIB - 1) for _ in range(20)]
    for frame in given:
        pool.recycle(frame)

    taken = [pool.take(MIB - 1, 8) for _ in range(20)]

    assert sum(any(frame is one for one in given) for frame in taken) == 8


def test_discarded_large_frames_are_freed_one_by_one() -> None:
    steps: list[Callable[[], None]] = []
    pool = FramePool(steps.append)
    frames = [bytearray(2 * MIB) for _ in range(3)]

    for frame in frames:
        pool.free(frame)
    pool.free(bytearray(KIB))

    assert len(steps) == 3
    steps[0]()
    assert [len(frame) for frame in frames] == [MIB, 2 * MIB, 2 * MIB]
