"""Frames are found in a byte stream, however the stream is split."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.errors import FrameSizeError
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.protocol.framing import Disposition, FrameReader, frame_of

HEAD_BYTES = 8


class FrameRecorder:
    """Gathers frames that start with G and streams others."""

    def __init__(self) -> None:
        self.streamed = bytearray()
        self.gathered: list[bytes] = []
        self.heads: list[tuple[int, bytes]] = []

    def on_head(self, size: int, head: bytes) -> Disposition:
        self.heads.append((size, head))
        return Disposition.GATHER if head.startswith(b"G") else Disposition.STREAM

    def on_pass(self, data: memoryview) -> None:
        self.streamed += data

    def on_room(self, more: int, size: int) -> None: ...

    def on_frame(self, frame: bytearray) -> None:
        self.gathered.append(bytes(frame))


def feed_reader(reader: FrameReader, data: bytes) -> None:
    """Feed like a connection: into the gathered frame if there is one, otherwise through `receive`."""
    while data:
        view = reader.gathering_view()
        if view is None:
            data = data[reader.receive(memoryview(data), len(data)) :]
        else:
            count = min(len(view), len(data))
            view[:count] = data[:count]
            view.release()
            reader.gathered(count)
            data = data[count:]


frames = st.lists(
    st.sampled_from([b"G", b"S"]).flatmap(lambda kind: st.binary(max_size=60).map(lambda d: kind + d)) | st.just(b"")
)


@given(frames, st.lists(st.integers(1, 40)))
def test_frames_are_complete_for_any_chunking_of_the_stream(payloads: list[bytes], cuts: list[int]) -> None:
    recorder = FrameRecorder()
    reader = FrameReader(recorder, HEAD_BYTES, 100, FramePool())
    stream = b"".join(map(frame_of, payloads))
    while stream:
        size = cuts.pop() if cuts else len(stream)
        feed_reader(reader, stream[:size])
        stream = stream[size:]

    assert recorder.gathered == [p for p in payloads if p.startswith(b"G")]
    assert recorder.streamed == b"".join(frame_of(p) for p in payloads if not p.startswith(b"G"))
    assert recorder.heads == [(len(p), p[:HEAD_BYTES]) for p in payloads]
    assert not reader.mid_frame


def test_buffered_frame_larger_than_its_initial_buffer_is_complete() -> None:
    recorder = FrameRecorder()
    payload = b"G" + bytes(range(256)) * 12_000

    feed_reader(FrameReader(recorder, HEAD_BYTES, 10_000_000, FramePool()), frame_of(payload) + frame_of(b"S"))

    assert recorder.gathered == [payload]
    assert recorder.streamed == frame_of(b"S")


def test_frame_reader_suspended_by_a_callback_stops_after_the_frame() -> None:
    recorder = FrameRecorder()
    reader = FrameReader(recorder, HEAD_BYTES, 100, FramePool())
    first, second = frame_of(b"Gfirst-frame"), frame_of(b"Gsecond-frame")
    recorder.on_frame = lambda frame: (recorder.gathered.append(bytes(frame)), setattr(reader, "suspended", True))  # type: ignore[method-assign]  # a spy

    used = reader.receive(memoryview(first + second), len(first + second))

    assert used == len(first)
    assert recorder.gathered == [b"Gfirst-frame"]


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_rejects_frame_size_out_of_bounds_with_its_first_bytes(size: int) -> None:
    reader = FrameReader(FrameRecorder(), HEAD_BYTES, 100, FramePool())

    with pytest.raises(FrameSizeError) as caught:
        reader.receive(memoryview(struct.pack(">i", size) + b"something"), 13)

    assert caught.value.size == size
    assert caught.value.head.startswith(struct.pack(">i", size))


def test_large_stated_frame_size_allocates_nothing_before_bytes_arrive() -> None:
    reader = FrameReader(FrameRecorder(), HEAD_BYTES, 2**31 - 1, FramePool())

    reader.receive(memoryview(struct.pack(">i", 2**31 - 1) + b"Gxxxxxxx"), 12)

    view = reader.gathering_view()
    assert view is not None
    assert len(view) <= 1 << 12


def test_frame_reader_requests_memory_as_bytes_arrive_and_stops_if_suspended() -> None:
    recorder, asked = FrameRecorder(), []
    reader = FrameReader(recorder, HEAD_BYTES, 10_000_000, FramePool())
    payload = b"G" + bytes(range(256)) * 400

    def on_room(more: int, size: int) -> None:
        asked.append(more)
        reader.suspended = len(asked) == 3

    recorder.on_room = on_room  # type: ignore[method-assign]  # a spy
    stream = frame_of(payload)
    taken = 0
    while not reader.suspended:
        taken += reader.receive(memoryview(stream[taken:]), min(500, len(stream) - taken))

    assert sum(asked) <= 4 * taken
    assert recorder.gathered == []
    reader.suspended = False
    feed_reader(reader, stream[taken:])
    assert recorder.gathered == [payload]
    assert sum(asked) == len(payload)
