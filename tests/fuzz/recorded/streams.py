"""Reads the recorded streams, and the batches in them."""

import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from zipfile import ZipFile

from crc32c import crc32c

from sluicegate.protocol.api import APIS
from sluicegate.protocol.headers import parse_request_header, read_request_head
from sluicegate.protocol.produce_request import walk_produce_request
from tests.proxy.session.playbook import NOW

STREAMS = Path(__file__).with_name("streams.zip")
MOMENT = NOW
"""The timestamp of all records, except those from clients that cannot set it."""

_PRODUCE, _MOST_PARTITIONS = 0, 100
_MAGIC_AT, _CRC_AT, _COVERED_AT, _TIMES_AT, _HEADER_BYTES = 16, 17, 21, 27, 61


def recorded_streams() -> dict[str, bytes]:
    """Return each client's stream of one connection, by name and codec."""
    with ZipFile(STREAMS) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def frames_of(stream: bytes) -> Iterator[bytes]:
    """Return complete frames without their sizes."""
    at = 0
    while at + 4 <= len(stream):
        end = at + 4 + int.from_bytes(stream[at : at + 4], "big")
        if end > len(stream):
            return
        yield stream[at + 4 : end]
        at = end


@cache
def recorded_batches(now_ms: int) -> list[bytes]:
    """Return the recorded batches of partitions, with timestamps moved to `now_ms`."""
    return [_moved(records, now_ms) for stream in recorded_streams().values() for records in batches_in(stream)]


def batches_in(stream: bytes) -> Iterator[bytes]:
    """Return the records of all partitions, unchanged."""
    for frame in frames_of(stream):
        yield from _in(frame)


def _in(frame: bytes) -> Iterator[bytes]:
    key, version, _ = read_request_head(frame)
    if key != _PRODUCE:
        return
    body_at = parse_request_header(frame, APIS[key].request_header_version(version)).body_at
    request = walk_produce_request(bytearray(frame), version, body_at, _MOST_PARTITIONS)
    for t, topic in enumerate(request.topics):
        for p in range(len(topic.partitions)):
            records = request.records(t, p)
            if records is not None:
                yield bytes(records)


def _moved(records: bytes, now_ms: int) -> bytes:
    """Move a batch to another time and update its CRC; messages before magic 2 are unchanged."""
    if len(records) < _HEADER_BYTES or records[_MAGIC_AT] != 2:
        return records
    moved = bytearray(records)
    base, last = struct.unpack_from(">qq", moved, _TIMES_AT)
    struct.pack_into(">qq", moved, _TIMES_AT, base - MOMENT + now_ms, last - MOMENT + now_ms)
    struct.pack_into(">I", moved, _CRC_AT, crc32c(memoryview(moved)[_COVERED_AT:]))
    return bytes(moved)
