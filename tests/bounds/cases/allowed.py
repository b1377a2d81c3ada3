"""Inputs right below each limit, which cost the most, because larger inputs are rejected at once."""

from tests.bounds import hostile_batches as hostile
from tests.bounds.case import MIB, Case, CaseSize, Sends, send_one_piece
from tests.bounds.frames import ProduceLayout, equal_tagged_fields, request_header, sized_frame, sized_produce_request
from tests.bounds.stand_in_responses import topic_id_of
from tests.wire.batches import CODECS, GZIP, LZ4, NONE, ZSTD

_PARTITIONS = 9_990


def _allowed(name: str, make: Sends, connections: int = 1, only_thorough: bool = False, long: bool = False) -> Case:
    extent = CaseSize(connections=connections, seconds=20)
    return Case(f"just allowed: {name}", make, extent, only_thorough=only_thorough, long=long)


def _plain(codec: int, size: int, count: int) -> Sends:
    """Return `count` batches that decompress to `size` bytes each."""
    return send_one_piece(
        lambda _: sized_produce_request(
            9, {b"attacked": [(i, hostile.small_batch_of(codec, size)) for i in range(count)]}
        )
    )


ALLOWED = [
    *(
        _allowed(
            f"9,990 null partitions, Produce v{version}",
            send_one_piece(
                lambda _, version=version: sized_produce_request(
                    version, {topic_id_of("attacked"): [(0, None)] * _PARTITIONS}
                )
            ),
        )
        for version in (0, 5, 9, 13)
    ),
    _allowed(
        "4,990 topics of one partition, names of 200 letters",
        send_one_piece(
            lambda _: sized_produce_request(9, {b"%d-" % i + b"n" * 200: [(0, None)] for i in range(4_990)})
        ),
    ),
    _allowed(
        "4,990 unknown topic ids",
        send_one_piece(
            lambda _: sized_produce_request(13, {i.to_bytes(16, "big"): [(0, None)] for i in range(1, 4_991)})
        ),
    ),
    _allowed(
        "9,990 small good batches",
        send_one_piece(
            lambda _: sized_produce_request(
                9, {b"attacked": [(i, hostile.small_batch_of(NONE, 10)) for i in range(_PARTITIONS)]}
            )
        ),
    ),
    _allowed(
        "9,990 small bad batches",
        send_one_piece(
            lambda _: sized_produce_request(
                9, {b"attacked": [(i, hostile.bad_records(NONE, 1)) for i in range(_PARTITIONS)]}
            )
        ),
    ),
    _allowed(
        "9,990 small bad batches, Produce v13, from 5 connections",
        send_one_piece(
            lambda _: sized_produce_request(
                13, {topic_id_of("attacked"): [(i, hostile.bad_records(ZSTD, 3)) for i in range(_PARTITIONS)]}
            )
        ),
        connections=5,
    ),
    _allowed(
        "1,000 tags in a header",
        send_one_piece(
            lambda _: sized_frame(request_header(0, 9, tags=equal_tagged_fields(999)) + ProduceLayout(9).body([]))
        ),
    ),
    *(
        _allowed(f"120 MiB in one batch, {name}", _plain(codec, 120 * MIB, 1), only_thorough=codec not in (GZIP, ZSTD))
        for name, codec in hostile.COMPRESSED.items()
    ),
    *(
        _allowed(f"120 batches of 1 MiB, {name}", _plain(codec, MIB - 100, 120), only_thorough=codec not in (LZ4, ZSTD))
        for name, codec in CODECS.items()
    ),
    _allowed("1,000 batches of 100 kB, zstd, from 4 connections", _plain(ZSTD, 100_000, 1_000), connections=4),
    _allowed(
        "10 batches of 149,796 bad records, zstd, from 4 connections",
        send_one_piece(
            lambda _: sized_produce_request(
                9, {b"attacked": [(i, hostile.bad_records(ZSTD, 149_796)) for i in range(10)]}
            )
        ),
        connections=4,
    ),
    _allowed(
        "100 MB of the smallest records",
        send_one_piece(
            lambda _: sized_produce_request(9, {b"attacked": [(0, hostile.smallest_records(100 * MIB - 1000))]})
        ),
        long=True,
    ),
    _allowed(
        "1.76 M messages of magic 1",
        send_one_piece(
            lambda _: sized_produce_request(2, {b"attacked": [(0, hostile.batch_as_message_set(1, 1, 1_760_000))]})
        ),
    ),
]
