"""Batches that are expensive to validate: records, codecs, old message sets."""

from collections.abc import Callable

from tests.bounds import hostile_batches as hostile
from tests.bounds.case import MIB, Case, CaseSize, ExpectedEnd, send_one_piece
from tests.bounds.frames import sized_produce_request
from tests.wire.batches import CODECS, GZIP, LZ4, NONE, SNAPPY, XERIAL, ZSTD

_MADE = Callable[[int], bytes]


def _partitions(records: bytes, count: int) -> list[tuple[int, bytes | None]]:
    return [(i, records) for i in range(count)]


def _one(name: str, make: _MADE, short: int, thorough: int, version: int = 9, *, only_thorough: bool = False) -> Case:
    """One request with one batch."""
    return Case(
        name,
        send_one_piece(lambda n: sized_produce_request(version, {b"attacked": [(0, make(n))]})),
        CaseSize(short, seconds=15),
        CaseSize(thorough, seconds=90),
        only_thorough=only_thorough,
    )


def _bad_records(name: str, codec: int) -> Case:
    return Case(
        f"120 partitions, in each a batch of 149,796 bad records: {name}",
        send_one_piece(
            lambda n: sized_produce_request(9, {b"attacked": _partitions(hostile.bad_records(codec, 149_796), n)})
        ),
        CaseSize(10, seconds=20),
        CaseSize(120, seconds=90),
        only_thorough=codec not in (GZIP, ZSTD),
    )


def _legacy(name: str, magic: int, codec: int, version: int) -> Case:
    return _one(
        f"a compressed set of 1.76 M inner messages: magic {magic}, {name}, Produce v{version}",
        lambda n: hostile.batch_as_message_set(magic, codec, n),
        176_000,
        1_760_000,
        version,
        only_thorough=(magic, codec) not in ((1, GZIP), (0, GZIP)) or version == 1,
    )


def _converted(name: str, make: _MADE, short: int, thorough: int, *, only_thorough: bool = False) -> Case:
    """One set of old messages that the proxy converts (`listen.legacy`)."""
    return Case(
        f"{name}, converted",
        send_one_piece(lambda n: sized_produce_request(2, {b"attacked": [(0, make(n))]})),
        CaseSize(short, seconds=20),
        CaseSize(thorough, seconds=120),
        config={"listen": {"legacy": "convert"}},
        only_thorough=only_thorough,
    )


def _many_small_batches(name: str, codec: int, plain: int) -> Case:
    """Return a case with 496 kB of batches that decompress to 1 MiB each, because the ratio limits each batch, not the
    request."""
    return Case(
        f"496 kB of batches that become 1 MiB each: {name}",
        send_one_piece(
            lambda n: sized_produce_request(
                9,
                {b"attacked": _partitions(one := hostile.small_batch_of(codec, plain), max(1, n // len(one)))},
            )
        ),
        CaseSize(60_000, seconds=20),
        CaseSize(496_000, seconds=90),
        only_thorough=codec not in (GZIP, LZ4, ZSTD),
    )


def _bomb(name: str, codec: int) -> Case:
    return _one(
        f"a batch of 400 MB of zeros: {name}",
        hostile.decompression_bomb(codec),
        150_000_000,
        400_000_000,
        only_thorough=codec == XERIAL,
    )


VALIDATING = [
    *(_bad_records(name, codec) for name, codec in CODECS.items() if codec not in (NONE, XERIAL)),
    Case(
        "20 batches of 149,796 bad records, not compressed",
        send_one_piece(
            lambda n: sized_produce_request(9, {b"attacked": _partitions(hostile.bad_records(NONE, 149_796), n)})
        ),
        CaseSize(2, seconds=15),
        CaseSize(20, seconds=60),
    ),
    Case(
        "bad records, the client leaves at once",
        send_one_piece(
            lambda n: sized_produce_request(9, {b"attacked": _partitions(hostile.bad_records(ZSTD, 149_796), n)})
        ),
        CaseSize(20, connections=4, seconds=0.2),
        CaseSize(120, connections=4, seconds=0.2),
        ends=ExpectedEnd.STAYS,
    ),
    _legacy("gzip", 1, GZIP, 2),
    _legacy("gzip", 0, GZIP, 0),
    _legacy("snappy", 1, SNAPPY, 2),
    _legacy("lz4", 1, LZ4, 2),
    _legacy("gzip", 1, GZIP, 1),
    _one("a set of the smallest messages, not compressed, Produce v2", hostile.smallest_messages, 5 * MIB, 90 * MIB, 2),
    _converted("gzip with inner messages", lambda n: hostile.batch_as_message_set(1, GZIP, n), 176_000, 1_760_000),
    _converted("the smallest messages", hostile.smallest_messages, 2 * MIB, 90 * MIB, only_thorough=True),
    _one("small zstd frames", hostile.small_zstd_frames, 500_000, 8_000_000),
    _one("empty zstd frames", hostile.empty_zstd_frames, 500_000, 8_000_000),
    _one("skippable zstd frames", hostile.skippable_zstd_frames, 2_000_000, 20_000_000),
    _one("empty zstd blocks", hostile.empty_zstd_blocks, 2_000_000, 20_000_000),
    _one("gzip members", hostile.gzip_members, 500_000, 8_000_000),
    _one("gzip members of one byte", hostile.gzip_members_of_a_byte, 500_000, 8_000_000),
    _one("damaged gzip", hostile.damaged_gzip, 20_000_000, 90_000_000),
    _one("gzip that is cut", hostile.gzip_cut_within, 20_000_000, 90_000_000),
    _one("lz4 with checksums", hostile.checked_lz4, 20_000_000, 90_000_000),
    _one("lz4 blocks of one byte", hostile.tiny_lz4_blocks, 500_000, 8_000_000),
    _one("xerial blocks of one byte", hostile.tiny_xerial_blocks, 500_000, 8_000_000),
    _one("xerial blocks of nothing", hostile.empty_xerial_blocks, 500_000, 8_000_000),
    _one("xerial streams in a row", hostile.xerial_streams, 2_000_000, 20_000_000),
    _one("a zstd frame that asks for a window of 128 MiB", hostile.zstd_window, 400_000, 400_000),
    _one("a window of 128 MiB in 13 bytes", hostile.zstd_window_only, 1, 1),
    Case(
        "windows of 128 MiB on 40 connections",
        send_one_piece(lambda n: sized_produce_request(9, {b"attacked": _partitions(hostile.zstd_window(n), 1)})),
        CaseSize(400_000, connections=10, seconds=20),
        CaseSize(400_000, connections=40, seconds=60),
        held=4_000_000,
    ),
    _one("zstd that states 100 MB", hostile.zstd_claims, 1, 1),
    _one("snappy that states 32 times its size", hostile.snappy_claims, 3_000_000, 4_000_000),
    *(_many_small_batches(name, codec, MIB - 100) for name, codec in hostile.COMPRESSED.items()),
    *(_bomb(name, codec) for name, codec in hostile.COMPRESSED.items()),
    Case(
        "two requests of 3 MB that become 25 GB, others validate large batches",
        send_one_piece(
            lambda n: sized_produce_request(
                9,
                {
                    b"attacked": _partitions(
                        one := hostile.small_batch_of(ZSTD, MIB - 100), max(1, n // (len(one) + 10))
                    )
                },
            )
        ),
        CaseSize(600_000, connections=2, seconds=20),
        CaseSize(3_000_000, connections=2, seconds=90),
    ),
    _one("records with 1 M headers", hostile.records_of_headers, 100_000, 1_000_000),
    _one("the smallest records, not compressed", hostile.smallest_records, 10_000_000, 90_000_000),
    _one("small batches in a row in one partition", hostile.batches_in_a_row, 5_000_000, 90_000_000, 2),
    _one("small batches in a row in one partition, Produce v9", hostile.batches_in_a_row, 5_000_000, 90_000_000),
    *(
        Case(
            f"100 rejected requests in a row: Produce v{version}",
            lambda n, _number, version=version: [
                sized_produce_request(version, {b"attacked": [(0, hostile.bad_records(NONE, 5))]}, correlation_id=i)
                for i in range(n)
            ],
            CaseSize(100, connections=2),
            CaseSize(2_000, connections=10, seconds=30),
            only_thorough=version not in (3, 8, 9, 13),
        )
        for version in range(3, 14)
    ),
]
