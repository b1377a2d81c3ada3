"""Bytes reach the reader in order, however pauses and reads interleave."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.frame_pool import FramePool
from sluicegate.protocol.framing import Disposition, FrameReader, frame_of
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.memory import new_read_buffer
from sluicegate.proxy.session.outlets import LoopCalls, PeerInfo
from sluicegate.proxy.session.pause_reason import PauseReason
from tests.proxy.session.playbook import Outlet, Steps


class DeliveringOutlet(Outlet):
    """A transport that may deliver data after it was paused, as some do."""

    paused = False

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_reading(self) -> None:
        assert self.paused
        self.paused = False


class Owner:
    """Gathers every frame; pauses the connection after frames that start with H."""

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
            self.connection.pause(PauseReason.VALIDATING)

    def on_open(self, connection: Connection) -> None: ...

    def on_bytes_taken(self, connection: Connection) -> None: ...

    def on_sender_error(self, connection: Connection, error: SenderError) -> None:
        raise error

    def on_internal_error(self, connection: Connection, error: Exception) -> None:
        raise error

    def on_eof(self, connection: Connection) -> None:
        self.ended = True

    def on_lost(self, connection: Connection, error: Exception | None) -> None: ...

    def on_full(self, connection: Connection, full: bool) -> None: ...


def new_connection() -> tuple[Owner, Connection, DeliveringOutlet, Steps]:
    owner, steps = Owner(), Steps()
    loop = LoopCalls(steps.call_soon, steps.call_later, lambda step, _address: steps.call_soon(step))
    reader = FrameReader(owner, 8, 10_000, FramePool())
    connection = Connection(owner, reader, new_read_buffer(), lambda _: PeerInfo("p:1", "o:2"), loop)
    owner.connection, transport = connection, DeliveringOutlet(connection)
    connection.connection_made(transport)
    return owner, connection, transport, steps


def deliver(connection: Connection, data: bytes) -> None:
    while data:
        view = connection.get_buffer(-1)
        count = min(len(view), len(data))
        view[:count] = data[:count]
        connection.buffer_updated(count)
        data = data[count:]


payloads = st.lists(st.sampled_from([b"G", b"H", b"S"]).flatmap(lambda k: st.binary(max_size=40).map(lambda d: k + d)))


@given(payloads, st.lists(st.integers(1, 30)), st.randoms(use_true_random=False))
def test_frames_keep_their_order(sent: list[bytes], cuts: list[int], chance: random.Random) -> None:
    owner, connection, transport, steps = new_connection()
    stream = b"".join(map(frame_of, sent))
    while stream:
        size = cuts.pop() if cuts else len(stream)
        deliver(connection, stream[:size])
        stream = stream[size:]
        if chance.random() < 0.5:
            connection.resume(PauseReason.VALIDATING)
        if chance.random() < 0.5:
            steps.turn()
    steps.run_steps()
    while connection.is_paused:
        connection.resume(PauseReason.VALIDATING)
        steps.run_steps()

    assert owner.frames == [payload for payload in sent if payload[:1] in (b"G", b"H")]
    assert not transport.paused


def test_eof_is_reported_after_the_bytes_received_while_paused() -> None:
    owner, connection, _, steps = new_connection()
    deliver(connection, frame_of(b"H first") + frame_of(b"G second"))
    connection.eof_received()
    assert not owner.ended

    connection.resume(PauseReason.VALIDATING)
    steps.run_steps()

    assert owner.frames == [b"H first", b"G second"]
    assert owner.ended


def test_eof_during_a_resume_is_reported_after_the_backlog() -> None:
    owner, connection, _, steps = new_connection()
    deliver(connection, frame_of(b"H first") + frame_of(b"G second"))

    connection.resume(PauseReason.VALIDATING)
    connection.eof_received()
    assert not owner.ended
    steps.run_steps()

    assert owner.frames == [b"H first", b"G second"]
    assert owner.ended


@pytest.mark.parametrize("lets_go_on", [Connection.resume, Connection.resume_now])
def test_backlog_is_delivered_after_a_resume(lets_go_on: Callable[[Connection, PauseReason], None]) -> None:
    owner, connection, _, steps = new_connection()
    deliver(connection, frame_of(b"H first") + frame_of(b"G second"))

    lets_go_on(connection, PauseReason.VALIDATING)
    assert (len(owner.frames) == 2) is (lets_go_on is Connection.resume_now)
    steps.run_steps()

    assert owner.frames == [b"H first", b"G second"]


def test_a_new_pause_during_a_resume_stops_delivery() -> None:
    owner, connection, transport, steps = new_connection()
    deliver(connection, frame_of(b"H first") + frame_of(b"G second"))

    connection.resume(PauseReason.VALIDATING)
    connection.pause(PauseReason.MEMORY)
    steps.run_steps()
    assert owner.frames == [b"H first"]
    connection.resume(PauseReason.MEMORY)
    steps.run_steps()

    assert owner.frames == [b"H first", b"G second"]
    assert not transport.paused


@pytest.mark.parametrize("hold", list(PauseReason))
def test_each_pause_reason_stops_reading_until_it_is_resumed(hold: PauseReason) -> None:
    _, connection, transport, _ = new_connection()

    connection.pause(hold)
    connection.pause(PauseReason.VALIDATING)
    assert transport.paused
    connection.resume(PauseReason.VALIDATING)
    assert transport.paused is (hold is not PauseReason.VALIDATING)
    connection.resume(hold)
    assert not transport.paused


def test_read_buffer_that_was_not_filled_is_offered_again() -> None:
    """This happens if a socket turns out to have no data."""
    owner, connection, _, _ = new_connection()
    frame = frame_of(b"G" * 100)
    deliver(connection, frame[:50])
    connection.get_buffer(-1)

    connection.pause(PauseReason.VALIDATING)
    deliver(connection, frame[50:])
    connection.resume_now(PauseReason.VALIDATING)

    assert owner.frames == [b"G" * 100]
