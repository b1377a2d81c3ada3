"""Raw SASL tokens and Kafka requests are distinguished by their first bytes, and the right headers are remembered."""

import struct
import tracemalloc
from contextlib import suppress

import pytest

from sluicegate.protocol.errors import MalformedMessage
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.proxy.session.client.client_text import MAX_CHARACTERS
from sluicegate.proxy.session.client.identity import ClientIdentity, may_be_request
from sluicegate.proxy.session.handlers.request_handler import RequestHandler
from tests.bounds.frames import sized_request
from tests.proxy.session.playbook import Playbook

TOKENS = {
    "PLAIN": b"\0alice\0secret",
    "PLAIN, one letter": b"\0A\0password",
    "PLAIN with authzid": b"admin\0alice\0secret",
    "SCRAM first": b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
    "SCRAM final": b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    "OAUTHBEARER": b"n,,\x01auth=Bearer token\x01\x01",
    "GSSAPI first": b"\x60\x82\x02\x6e\x06\x09\x2a\x86\x48\x86\xf7",
    "GSSAPI wrap": b"\x05\x04\x05\xff\x00\x0c\x00\x00\x00\x00",
    "empty": b"",
}


@pytest.mark.parametrize("name", TOKENS)
def test_raw_sasl_tokens_are_not_mistaken_for_requests(name: str) -> None:
    assert not may_be_request(len(TOKENS[name]), TOKENS[name][:8])


@pytest.mark.parametrize(("key", "version"), [(0, 9), (3, 12), (18, 4), (0, 14), (200, 0)])
def test_headers_of_known_and_unknown_apis_are_recognized_as_requests(key: int, version: int) -> None:
    assert may_be_request(50, struct.pack(">hhi", key, version, 1))


def handler_and_identity() -> tuple[RequestHandler, ClientIdentity]:
    """Return the request handler of a session with enough memory."""
    play = Playbook()
    return play.session.requests, play.session.identity


def pass_frame(side: RequestHandler, frame: bytes) -> None:
    """Pass a frame without a body, which is noticed after its header was read."""
    side.on_head(len(frame), frame[:8])
    with suppress(MalformedMessage):
        side.on_frame(bytearray(frame))


def test_connections_do_not_retain_giant_request_headers() -> None:
    tags = b"\x01\x00" + b"\xe0\xd4\x03" + bytes(60_000)
    frame = struct.pack(">hhih", 0, 9, 1, 30_000) + b"c" * 30_000 + tags
    sides = [handler_and_identity() for _ in range(50)]

    tracemalloc.start()
    for side, _ in sides:
        pass_frame(side, frame)
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert kept < 50 * 4096
    assert {len(identity.client_id or "") for _, identity in sides} == {MAX_CHARACTERS}


def test_client_id_is_updated_by_each_request() -> None:
    side, identity = handler_and_identity()
    for client_id in (b"first", b"second", b"second", b"esc\x1b"):
        identity.client_id = None
        pass_frame(side, struct.pack(">hhih", 0, 9, 1, len(client_id)) + client_id + b"\0")
        assert identity.client_id == client_id.decode().replace("\x1b", r"\x1b")


@pytest.mark.parametrize("has_fast_path", [False, True] if HAS_FAST_PATH else [False])
@pytest.mark.parametrize("cut", range(1, 14))
def test_first_request_with_fragmented_header_is_forwarded_unchanged(cut: int, has_fast_path: bool) -> None:
    """The session has no broker yet, because the broker is connected when the head is complete."""
    frame = sized_request(1, 11, b"\xff" * 4 + bytes(34), 7)
    play = Playbook(has_fast_path)

    for piece in (frame[:cut], frame[cut:], frame):
        play.from_client(piece)
        play.loop.run_steps()
    play.from_client(b"")

    assert play.broker.sent == frame * 2
