"""A session that receives arbitrary bytes from its client or broker behaves the same whether they arrive whole or in
pieces, with and without its fast path, and never raises an internal error.
"""

import random
from unittest.mock import patch

import sluicegate.proxy.scheduling.scheduler
from sluicegate.protocol.framing import frame_of
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from tests.bounds.frames import compact_string, good_batch, sized_produce_request, sized_request
from tests.bounds.stand_in_responses import topic_id_of
from tests.proxy.session.playbook import NOW, Playbook

_MOST_BYTES = 32 * 1024
_LONGEST_PIECE = 700
_MOST_SINGLE_BYTES = 2048
# All work runs inline, at any cost, because work outside the event loop would change the order of responses.
_UNHURRIED = patch.multiple(
    sluicegate.proxy.scheduling.scheduler, _LOOP_REQUEST_SECONDS=60.0, _LOOP_MAKING_SECONDS=60.0
)
_BOUNDS = {"SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_BEFORE_MAX_MS": "86400000"}

ASKED = (
    sized_request(18, 3, compact_string(b"soft") + compact_string(b"1") + b"\0", 0),
    sized_request(3, 9, b"\1\1\0\0\0", 1),
    sized_request(10, 0, b"\0\1g", 2),
    sized_produce_request(9, {b"orders": [(0, good_batch(NOW))]}, -1, 3),
    sized_produce_request(3, {b"orders": [(0, good_batch(NOW))]}, 1, 4),
    sized_produce_request(13, {topic_id_of("orders"): [(0, good_batch(NOW))]}, -1, 5),
)
"""The requests in flight when the broker sends arbitrary bytes."""


@_UNHURRIED
def from_client(data: bytes) -> None:
    """Compare sessions that receive these bytes from a client, whole and in pieces. The first two bytes select the
    pieces."""
    stream = data[2 : 2 + _MOST_BYTES]
    whole = _from_client(stream, [len(stream)])

    for pieces in (_pieces(data[:2], len(stream)), _single_bytes(len(stream))):
        assert whole == _from_client(stream, pieces)
    assert whole == _from_client(stream, [len(stream)], has_fast_path=False)


@_UNHURRIED
def from_broker(data: bytes) -> None:
    """Compare sessions that receive these bytes as a broker's responses to `ASKED`, whole and in pieces."""
    stream = data[2 : 2 + _MOST_BYTES]
    whole = _from_broker(stream, [len(stream)])

    for pieces in (_pieces(data[:2], len(stream)), _single_bytes(len(stream))):
        assert whole == _from_broker(stream, pieces)
    assert whole == _from_broker(stream, [len(stream)], has_fast_path=False)


def _pieces(seed: bytes, size: int) -> list[int]:
    chance, made = random.Random(seed), []
    while size > 0:
        made.append(min(size, chance.choice((1, chance.randint(1, _LONGEST_PIECE)))))
        size -= made[-1]
    return made


def _single_bytes(size: int) -> list[int]:
    """Send piece by piece while the session responds at once, then the rest."""
    single = min(size, _MOST_SINGLE_BYTES)
    return [1] * single + [size - single] * (size > single)


def _from_client(stream: bytes, pieces: list[int], has_fast_path: bool = HAS_FAST_PATH) -> tuple[bytes, bytes, bool]:
    play = Playbook(has_fast_path, **_BOUNDS)
    at = 0
    for piece in pieces:
        play.from_client(stream[at : at + piece])
        play.loop.run_steps()
        at += piece
    play.from_client(b"")
    return _done(play)


def _from_broker(stream: bytes, pieces: list[int], has_fast_path: bool = HAS_FAST_PATH) -> tuple[bytes, bytes, bool]:
    play = Playbook(has_fast_path, **_BOUNDS)
    for asked in ASKED:
        play.from_client(asked)
        play.loop.run_steps()
    at = 0
    for piece in pieces:
        play.from_broker(stream[at : at + piece])
        play.loop.run_steps()
        at += piece
    play.from_broker(b"")
    return _done(play)


def _done(play: Playbook) -> tuple[bytes, bytes, bool]:
    play.loop.run_steps()
    play.parts.scheduler.close()
    assert not play.parts.counters.internal_errors, "an internal error"
    return bytes(play.broker.sent), bytes(play.client.sent), play.client.is_closing()


def seed_responses() -> list[bytes]:
    """Return a broker's responses to `ASKED`, as a seed."""
    from tests.bounds.stand_in_responses import StandInResponses  # noqa: PLC0415

    broker = StandInResponses({1: ("127.0.0.1", 9092)})
    return [broker.response(asked[4:]) or frame_of(b"") for asked in ASKED]
