"""Responses of broken or hostile brokers, by name. Each is made from a valid response."""

import random
import struct
from collections.abc import Callable

from tests.bounds.frames import endless_varint, equal_tagged_fields, int32, sized_frame, uvarint

Forgery = Callable[[bytes, bytes], bytes]
"""Returns the bytes to write instead of a valid response. The arguments are the response with its size, and the
request."""

MANY = 300_000
_GIANT = 100_000_000


def _random_body(sound: bytes, _request: bytes) -> bytes:
    chance = random.Random(len(sound))
    return sized_frame(sound[4:8] + chance.randbytes(max(1, len(sound) - 8)))


def _high_bytes(sound: bytes, _request: bytes) -> bytes:
    return sized_frame(sound[4:8] + b"\xff" * (len(sound) - 8))


def _not_utf8(sound: bytes, _request: bytes) -> bytes:
    """Replace names by bytes that are not UTF-8."""
    return sound.replace(b"127.0.0.1", b"\xc3\x28\xa0\xa1\xe2\x28\xfd\xff\xc0").replace(b"stand-in", b"\xc3\x28and-in")


def _counts_of_everything(sound: bytes, _request: bytes) -> bytes:
    return sized_frame(sound[4:8] + b"\0" * 5 + b"\x7f\xff\xff\xff" * 6)


def _other_correlation(sound: bytes, _request: bytes) -> bytes:
    return sound[:4] + struct.pack(">I", struct.unpack_from(">I", sound, 4)[0] ^ 1) + sound[8:]


def _with_tags(tags: bytes) -> Forgery:
    """Put tags into the header of a flexible response; in others they replace the first byte of the body."""
    return lambda sound, _request: sized_frame(sound[4:8] + tags + sound[9:])


def _with_host(host: bytes) -> Forgery:
    """Replace the first host of a response, in either encoding of strings."""

    def frame_with_forged_body(sound: bytes, _request: bytes) -> bytes:
        old = b"127.0.0.1"
        frame = sound[4:]
        frame = frame.replace(struct.pack(">h", len(old)) + old, struct.pack(">h", len(host)) + host, 1)
        frame = frame.replace(uvarint(len(old) + 1) + old, uvarint(len(host) + 1) + host, 1)
        return sized_frame(frame)

    return frame_with_forged_body


FORGED_RESPONSES: dict[str, Forgery] = {
    "random bytes": _random_body,
    "0xff throughout": _high_bytes,
    "text that is no UTF-8": _not_utf8,
    "counts of 2^31": _counts_of_everything,
    "another correlation id": _other_correlation,
    "an empty frame": lambda _sound, _request: int32(0),
    "a negative size": lambda _sound, _request: int32(-5),
    "2 GB announced": lambda sound, _request: int32(2**31 - 1) + sound[4:],
    "100 MB announced": lambda sound, _request: int32(_GIANT) + sound[4:],
    "half a response": lambda sound, _request: sound[: 4 + max(1, (len(sound) - 4) // 2)],
    "cut short": lambda sound, _request: sized_frame(sound[4:-3]),
    "bytes after the end": lambda sound, _request: sized_frame(sound[4:] + b"\0" * 50),
    "twice": lambda sound, _request: sound * 2,
    "a varint without an end": lambda sound, _request: sized_frame(sound[4:8] + endless_varint(400_000)),
    "a varint without an end after the header": lambda sound, _request: sized_frame(
        sound[4:9] + endless_varint(400_000)
    ),
    "a million tags": _with_tags(equal_tagged_fields(1_000_000)),
    "a host a..b": _with_host(b"a..b"),
    "a host with a label of 70": _with_host(b"x" * 70 + b".example"),
    "a host of 30,000 letters": _with_host(b"h" * 30_000),
    "a host with NUL": _with_host(b"a\0b"),
    "no host": _with_host(b""),
    "zeros": lambda sound, _request: sized_frame(sound[4:8] + bytes(MANY)),
    "ones": lambda sound, _request: sized_frame(sound[4:8] + b"\1" * MANY),
    "60 MB of zeros": lambda sound, _request: sized_frame(sound[4:8] + bytes(60_000_000)),
    "HTTP": lambda _sound, _request: b"HTTP/1.1 400 Bad Request\r\n\r\n",
}
