"""Bytes reach the reader in their order, however holds and reads interleave."""

import asyncio
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.protocol.framing import Disposition, FrameReader, frame_of
from sluicegate.proxy.network.connection import Connection, Hold, new_shared_buffer


class FakeTransport(asyncio.Transport):
    """A transport that may still deliver after it was paused, as some do."""

    def __init__(self) -> None:
        super().__init__()
        self.paused = False

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        assert self.paused
        self.paused = False


class Owner:
    """Gathers every frame; holds the connection behind those that start with H."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.ended = False
        self.connection: Connection | None = None

    def on_head(self, size: int, head: bytes) -> Disposition:
        return Disposition.GATHER if head[:1] in (b"G", b"H") else Disposition.STREAM

    def on_pass(self, data: memoryview) -> None: ...

    def on_room(self, more: int, size: int) -> None: ...

    def on_frame(self, frame: bytearray) -> None:
        self.frames.append(bytes(frame))
        if frame[:1] == b"H":
            assert self.connection is not None
            self.connection.hold(Hold.JUDGING)

    def on_open(self, connection: Connection) -> None: ...

    def on_bytes_taken(self, connection: Connection) -> None: ...

    def on_sender_error(self, connection: Connection, error: SenderError) -> None:
        raise error

    def on_our_fault(self, connection: Connection, error: Exception) -> None:
        raise error

    def on_eof(self, connection: Connection) -> None:
        self.ended = True

    def on_lost(self, connection: Connection, error: Exception | None) -> None: ...

    def on_full(self, connection: Connection, full: bool) -> None: ...


def connected() -> tuple[Owner, Connection, FakeTransport]:
    owner, transport = Owner(), FakeTransport()
    connection = Connection(owner, FrameReader(owner, 8, 10_000, FramePool()), new_shared_buffer())
    owner.connection = connection
    connection.connection_made(transport)
    return owner, connection, transport


def deliver(connection: Connection, data: bytes) -> None:
    while data:
        view = connection.get_buffer(-1)
        count = min(len(view), len(data))
        view[:count] = data[:count]
        connection.buffer_updated(count)
        data = data[count:]


payloads = st.lists(st.sampled_from([b"G", b"H", b"S"]).flatmap(lambda k: st.binary(max_size=40).map(lambda d: k + d)))


@given(payloads, st.lists(st.integers(1, 30)), st.randoms(use_true_random=False))
def test_frames_keep_their_order(sent: list[bytes], cuts: list[int], chance: object) -> None:
    owner, connection, transport = connected()
    stream = b"".join(map(frame_of, sent))
    while stream:
        size = cuts.pop() if cuts else len(stream)
        deliver(connection, stream[:size])
        stream = stream[size:]
        if cast("object", chance).random() < 0.5:  # type: ignore[attr-defined]
            connection.release(Hold.JUDGING)
    while connection.is_held:
        connection.release(Hold.JUDGING)

    assert owner.frames == [payload for payload in sent if payload[:1] in (b"G", b"H")]
    assert not transport.paused


def test_an_end_behind_held_bytes_is_told_after_them() -> None:
    owner, connection, _ = connected()
    deliver(connection, frame_of(b"H first") + frame_of(b"G second"))
    connection.eof_received()
    assert not owner.ended

    connection.release(Hold.JUDGING)

    assert owner.frames == [b"H first", b"G second"]
    assert owner.ended


@pytest.mark.parametrize("hold", list(Hold))
def test_each_hold_stops_reading_until_it_is_released(hold: Hold) -> None:
    _, connection, transport = connected()

    connection.hold(hold)
    connection.hold(Hold.JUDGING)
    assert transport.paused
    connection.release(Hold.JUDGING)
    assert transport.paused is (hold is not Hold.JUDGING)
    connection.release(hold)
    assert not transport.paused
