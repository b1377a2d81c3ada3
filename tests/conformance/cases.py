"""Defines the cases: requests and the kinds of their topics. The expectations come from a real broker.

Times are offsets from `now` in ms, with margins for the time between two sends. Bounds to the millisecond are tested in
test_bounds.py.
"""

import gzip
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import lz4.frame

from tests.conformance.differences import NULL_RECORDS
from tests.framing.cases import AMBIGUOUS, HONEST, UNREADABLE
from tests.wire.batches import (
    CODECS,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    XERIAL,
    ZSTD,
    Rec,
    batch,
    compress,
    message,
    record,
    varint,
    wrapper,
)

HOUR = 3_600_000
DAY = 24 * HOUR
BEFORE_MAX, AFTER_MAX = DAY, HOUR
LOG_APPEND_TIME_FLAG, TRANSACTIONAL_FLAG, CONTROL_FLAG = 0x08, 0x10, 0x20
LONG_MAX, LONG_MIN = 2**63 - 1, -(2**63)

TOPIC_KINDS: dict[str, dict[str, str]] = {
    "bounded": {"message.timestamp.before.max.ms": str(BEFORE_MAX), "message.timestamp.after.max.ms": str(AFTER_MAX)},
    "open": {"message.timestamp.after.max.ms": str(LONG_MAX)},
    "compacted": {
        "cleanup.policy": "compact",
        "message.timestamp.before.max.ms": str(BEFORE_MAX),
        "message.timestamp.after.max.ms": str(AFTER_MAX),
    },
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "small": {"max.message.bytes": "1000", "message.timestamp.after.max.ms": str(LONG_MAX)},
}

ABSENT = "absent"
"""A kind of topic that does not exist."""

Partitions = list[tuple[int, bytes | None]]
Topics = list[tuple[str, Partitions]]
Build = Callable[[int], Partitions]


def no_partitions(_now: int) -> Topics:
    return []


@dataclass(frozen=True)
class Case:
    """`build(now)` returns the partitions of one request as (index, records); `beside` returns further topics.

    `difference`: the listed difference that this case shows, see differences.py.
    """

    name: str
    kind: str
    build: Build
    versions: range = range(3, 14)
    acks: int = -1
    transactional_id: str | None = None
    beside: Callable[[int], Topics] = no_partitions
    difference: str | None = None

    def topics(self, now: int) -> Topics:
        return [(self.kind, self.build(now)), *self.beside(now)]


def one_partition(records: Callable[[int], bytes | None]) -> Build:
    return lambda now: [(0, records(now))]


def records_around_now(*offsets: int | None) -> Callable[[int], list[Rec]]:
    """Return records at these offsets from now; None is -1, no timestamp."""
    return lambda now: [Rec(-1 if o is None else now + o, value=b"value %d" % i) for i, o in enumerate(offsets)]


def records_at(*timestamps: int) -> Callable[[int], list[Rec]]:
    return lambda now: [Rec(now), *(Rec(t) for t in timestamps)]


TIMES: dict[str, Callable[[int], list[Rec]]] = {
    "all in range": records_around_now(0, -HOUR, HOUR // 2),
    "near both bounds": records_around_now(-DAY + 60_000, HOUR - 60_000),
    "first too old": records_around_now(-DAY - 60_000, 0, 0),
    "middle too new": records_around_now(0, HOUR + 60_000, 0),
    "last too new": records_around_now(0, 0, 2 * HOUR),
    "several bad": records_around_now(-2 * DAY, 0, 2 * HOUR, 0, -3 * DAY),
    "all bad": records_around_now(-2 * DAY, -2 * DAY, 2 * HOUR, 2 * HOUR),
    "no time": records_around_now(None, None),
    "no time among bad": records_around_now(None, -2 * DAY, None),
    "zero": records_at(0),
    "seconds": lambda now: [Rec(now), Rec(now // 1000)],
    "microseconds": lambda now: [Rec(now), Rec(now * 1000)],
    "nanoseconds": lambda now: [Rec(now), Rec(now * 1_000_000), Rec(now)],
    "negative": records_at(-2, -1_700_000_000_000),
    "long max": records_at(LONG_MAX),
    "long min": records_at(LONG_MIN),
    "around the overflow": records_at(LONG_MIN + 1_800_000_000_000, LONG_MAX - 1_800_000_000_000),
    "many": lambda now: [Rec(now if i % 7 else now * 1000) for i in range(300)],
}


def _times_cases() -> list[Case]:
    cases = []
    for what, records in TIMES.items():
        for codec_name, codec in CODECS.items():
            versions = range(7, 14) if codec == ZSTD else range(3, 14)
            for kind in ("bounded", "append-time", "open"):
                build = one_partition(lambda now, r=records, c=codec: batch(r(now), c))
                cases.append(Case(f"times: {what}, {codec_name}", kind, build, versions))
    return cases


def _key_cases() -> list[Case]:
    cases = []
    for codec_name, codec in CODECS.items():
        versions = range(7, 14) if codec == ZSTD else range(3, 14)
        keys: dict[str, Callable[[int], list[Rec]]] = {
            "null key": lambda now: [Rec(now), Rec(now, key=None), Rec(now)],
            "empty key": lambda now: [Rec(now, key=b"")],
            "null keys, more than three": lambda now: [Rec(now, key=None) for _ in range(5)],
            "null key and bad time": lambda now: [Rec(now, key=None), Rec(now * 1000), Rec(now * 1000, key=None)],
            "null value": lambda now: [Rec(now, value=None)],
            "empty value and headers": lambda now: [Rec(now, value=b"", headers=[(b"", None), (b"h", b"x")])],
        }
        for what, records in keys.items():
            build = one_partition(lambda now, r=records, c=codec: batch(r(now), c))
            cases += [Case(f"keys: {what}, {codec_name}", kind, build, versions) for kind in ("compacted", "bounded")]
    return cases


def good_records(now: int) -> list[Rec]:
    return [Rec(now), Rec(now - 1), Rec(now - 2)]


def _header_cases() -> list[Case]:
    changes: dict[str, dict[str, int]] = {
        "count too large": {"count": 4, "last_offset_delta": 3},
        "count too small": {"count": 2, "last_offset_delta": 1},
        "count against offsets": {"count": 2},
        "last offset delta too large": {"last_offset_delta": 9},
        "last offset delta negative": {"last_offset_delta": -1},
        "count zero": {"count": 0},
        "count negative": {"count": -1},
        "count huge": {"count": 2**31 - 1, "last_offset_delta": 2**31 - 2},
        "control batch": {"flags": CONTROL_FLAG},
        "producer id without sequence": {"producer_id": 7, "producer_epoch": 0, "base_sequence": -1},
        "sequence without producer id": {"base_sequence": 5},
        "base offset not zero": {"base_offset": 5},
        "wrong crc": {"crc": 1},
        "false max timestamp": {"max_timestamp": LONG_MAX},
        "max timestamp -1": {"max_timestamp": -1},
        "leader epoch set": {"leader_epoch": 42},
        "delete horizon flag": {"flags": 0x40},
        "high attribute bits": {"flags": 0x7F00},
        "claims log append time": {"flags": LOG_APPEND_TIME_FLAG},
        "claims log append time, bad max": {"flags": LOG_APPEND_TIME_FLAG, "max_timestamp": 1},
        "claims log append time, no max": {"flags": LOG_APPEND_TIME_FLAG, "max_timestamp": -1},
        "magic 3": {"magic": 3},
        "magic -1": {"magic": -1},
        "magic 1 in a v2 shape": {"magic": 1},
        "length 13": {"length": 13},
        "length 14": {"length": 14},
        "length 48": {"length": 48},
        "length 49": {"length": 49},
        "length negative": {"length": -1},
        "length too long": {"length": 5000},
        "length just below the overflow": {"length": 2**31 - 13},
        "length where it overflows": {"length": 2**31 - 12},
        "length max": {"length": 2**31 - 1},
        "codec 5": {"attributes": 5},
        "codec 7": {"attributes": 7},
    }
    cases = []
    for what, change in changes.items():
        for codec in (NONE, LZ4):
            build = one_partition(lambda now, ch=change, c=codec: batch(good_records(now), c, **ch))
            kinds = ("bounded", "append-time") if "append time" in what else ("bounded",)
            cases += [Case(f"header: {what}, codec {codec}", kind, build) for kind in kinds]
    two_bad = one_partition(
        lambda now: batch([Rec(now), Rec(now, key=None)], flags=LOG_APPEND_TIME_FLAG, max_timestamp=1)
    )
    cases.append(Case("header: claims log append time, bad max, null key", "compacted", two_bad))
    return cases


def _payload_cases() -> list[Case]:
    def sized_record_body(fields: bytes) -> bytes:
        return varint(len(fields)) + fields

    start = b"\0" + varint(0) + varint(0)
    payloads: dict[str, bytes] = {
        "empty": b"",
        "length varint overruns": b"\x80",
        "length varint too long": b"\xff" * 6 + start,
        "length varint too long at the end": b"\xff" * 5,
        "offset varint too long, then little": sized_record_body(b"\0" + varint(0) + b"\xff" * 6 + varint(40) + b"k"),
        "key varint too long at the end": sized_record_body(start + b"\xff" * 5),
        "length negative": varint(-5) + start + varint(-1) + varint(-1) + varint(0),
        "length too small": varint(3) + start + varint(-1) + varint(-1) + varint(0),
        "length too large": varint(30) + start + varint(-1) + varint(-1) + varint(0),
        "key overruns": sized_record_body(start + varint(1000) + b"k"),
        "key size -2": sized_record_body(start + varint(-2) + varint(-1) + varint(0)),
        "value overruns": sized_record_body(start + varint(-1) + varint(1000) + b"v"),
        "header count negative": sized_record_body(start + varint(-1) + varint(-1) + varint(-1)),
        "header count too large": sized_record_body(start + varint(-1) + varint(-1) + varint(9999)),
        "header key negative": sized_record_body(start + varint(-1) + varint(-1) + varint(1) + varint(-1) + varint(-1)),
        "header value overruns": sized_record_body(
            start + varint(-1) + varint(-1) + varint(1) + varint(1) + b"h" + varint(99)
        ),
        "time varint too long": sized_record_body(b"\0" + b"\xff" * 10 + b"\x01"),
        "offset varint five bytes": sized_record_body(
            b"\0" + varint(0) + b"\x80\x80\x80\x80\x70" + varint(-1) + varint(-1) + varint(0)
        ),
        "trailing bytes": sized_record_body(start + varint(-1) + varint(-1) + varint(0)) + b"xyz",
        "attributes set": sized_record_body(b"\xff" + varint(0) + varint(0) + varint(-1) + varint(-1) + varint(0)),
    }
    cases = []
    for what, payload in payloads.items():
        for codec_name, codec in CODECS.items():
            versions = range(7, 14) if codec == ZSTD else range(3, 14)
            build = one_partition(
                lambda now, p=payload, c=codec: batch([], c, payload=p, count=1, base_timestamp=now, max_timestamp=now)
            )
            cases.append(Case(f"payload: {what}, {codec_name}", "bounded", build, versions))
    for codec_name, codec in CODECS.items():
        if codec == NONE:
            continue
        versions = range(7, 14) if codec == ZSTD else range(3, 14)
        garbage = one_partition(lambda now, c=codec: batch(good_records(now), c, compressed=b"this is not compressed"))
        no_partitions = one_partition(lambda now, c=codec: batch(good_records(now), c, compressed=b""))
        for what, change in (
            ("cut short", lambda data: data[:-3]),
            ("cut in half", lambda data: data[: len(data) // 2]),
            ("bytes after it", lambda data: data + b"\0\0\0\0behind"),
            ("twice", lambda data: data + data),
            ("a flipped bit", lambda data: data[:-12] + bytes([data[-12] ^ 0x10]) + data[-11:]),
        ):
            changed = one_partition(
                lambda now, c=codec, ch=change: batch(good_records(now), c, compressed=ch(compress_records(now, c)))
            )
            cases.append(Case(f"payload: {what}, {codec_name}", "bounded", changed, versions))
            batch_with_bad_time = one_partition(
                lambda now, c=codec, ch=change: batch(
                    records_with_late_bad_times(now),
                    c,
                    compressed=ch(compress_records(now, c, records_with_late_bad_times)),
                )
            )
            cases.append(
                Case(f"payload: {what} with bad times, {codec_name}", "bounded", batch_with_bad_time, versions)
            )
        cases += [
            Case(f"payload: garbage, {codec_name}", "bounded", garbage, versions),
            Case(f"payload: nothing, {codec_name}", "bounded", no_partitions, versions),
        ]
    with_size = lambda now: lz4.frame.compress(encode_records(good_records(now), now), store_size=True)  # noqa: E731
    cut_in_block = one_partition(lambda now: batch(good_records(now), LZ4, compressed=with_size(now)[:-12]))
    skippable = one_partition(
        lambda now: batch(good_records(now), LZ4, compressed=b"\x50\x2a\x4d\x18\4\0\0\0abcd" + with_size(now))
    )
    wrong_size = one_partition(
        lambda now: batch(good_records(now), LZ4, compressed=with_lz4_content_size(with_size(now), 7))
    )
    wrong_sum = one_partition(
        lambda now: batch(
            good_records(now),
            LZ4,
            compressed=lz4_with_checksums(encode_records(good_records(now), now))[:-4] + b"wrong"[:4],
        )
    )
    cut_behind_bad_varint = one_partition(
        lambda now: batch(
            [Rec(now)] * 2,
            LZ4,
            compressed=lz4.frame.compress(bad_varint_then_little(now), block_linked=False)[:-4] + b"\x80\0\0\0",
        )
    )
    linked = one_partition(
        lambda now: batch(
            long_records(now),
            LZ4,
            compressed=lz4.frame.compress(encode_records(long_records(now), now), block_linked=True),
        )
    )
    checked = one_partition(
        lambda now: batch(good_records(now), LZ4, compressed=lz4_with_checksums(encode_records(good_records(now), now)))
    )
    sizes = one_partition(
        lambda now: batch(
            good_records(now),
            LZ4,
            compressed=lz4.frame.compress(encode_records(good_records(now), now), store_size=False),
        )
    )
    members = one_partition(
        lambda now: batch(good_records(now), GZIP, compressed=gzip_members(encode_records(good_records(now), now)))
    )
    return [
        *cases,
        Case("payload: linked blocks, lz4", "bounded", linked),
        Case("payload: a bad varint, then damage, lz4", "bounded", cut_behind_bad_varint),
        Case("payload: cut within a plain block, lz4", "bounded", cut_in_block),
        Case("payload: after a skippable frame, lz4", "bounded", skippable),
        Case("payload: wrong content size, lz4", "bounded", wrong_size),
        Case("payload: wrong content checksum, lz4", "bounded", wrong_sum),
        Case("payload: checksums, lz4", "bounded", checked),
        Case("payload: no content size, lz4", "bounded", sizes),
        Case("payload: two members, gzip", "bounded", members),
    ]


def encode_records(records: list[Rec], base: int) -> bytes:
    return b"".join(record(r, i, base) for i, r in enumerate(records))


def compress_records(now: int, codec: int, records: "Callable[[int], list[Rec]] | None" = None) -> bytes:
    return compress(codec, encode_records((records or good_records)(now), now))


def records_with_late_bad_times(now: int) -> list[Rec]:
    """Records with a good first timestamp, which is also the base, and bad ones among the following."""
    return [Rec(now if i % 5 else now * 1000 if i else now, value=b"%d" % (i * 7919)) for i in range(200)]


def long_records(now: int) -> list[Rec]:
    return [Rec(now, value=bytes(range(256)) * 300) for _ in range(20)]


def lz4_with_checksums(data: bytes) -> bytes:
    return lz4.frame.compress(data, block_linked=False, content_checksum=True, block_checksum=True)


def with_lz4_content_size(frame: bytes, size: int) -> bytes:
    """Return the frame with another content size in its header and the matching header checksum."""
    head = frame[:6] + size.to_bytes(8, "little")
    for checksum in range(256):
        changed = head + bytes([checksum]) + frame[15:]
        with suppress(RuntimeError):
            lz4.frame.get_frame_info(changed)
            return changed
    raise AssertionError("no checksum fits")


def bad_varint_then_little(now: int) -> bytes:
    """A good record, and one with an overlong varint and a value that ends too early."""
    return (
        record(Rec(now), 0, now) + varint(60) + b"\0" + varint(0) + b"\xff" * 6 + varint(1) + b"k" + varint(50) + b"v"
    )


def gzip_members(data: bytes) -> bytes:
    return gzip.compress(data[:20]) + gzip.compress(data[20:])


def _request_cases() -> list[Case]:
    def batch_with_bad_time(now: int) -> bytes:
        return batch([Rec(now), Rec(now * 1000)])

    def good_v2_batch(now: int) -> bytes:
        return batch(good_records(now))

    def transactional_batch(now: int, producer_id: int) -> bytes:
        return batch(
            good_records(now), flags=TRANSACTIONAL_FLAG, producer_id=producer_id, producer_epoch=0, base_sequence=0
        )

    both = lambda now: [(0, good_v2_batch(now)), (1, batch_with_bad_time(now)), (2, good_v2_batch(now))]  # noqa: E731
    return [
        Case("request: one of three bad", "bounded", both),
        Case("request: one of three bad, acks 1", "bounded", both, acks=1),
        Case("request: acks 7", "bounded", both, acks=7),
        Case("request: acks 0, all good", "bounded", lambda now: [(0, good_v2_batch(now))], acks=0),
        Case("request: acks 0, one bad", "bounded", both, acks=0),
        Case("request: acks 0, all bad", "bounded", lambda now: [(0, batch_with_bad_time(now))], acks=0),
        Case("request: empty records", "bounded", lambda now: [(0, b""), (1, good_v2_batch(now))]),
        Case(
            "request: truncated batch", "bounded", lambda now: [(0, good_v2_batch(now)[:-5]), (1, good_v2_batch(now))]
        ),
        Case("request: eleven bytes", "bounded", lambda now: [(0, good_v2_batch(now)[:11])]),
        Case("request: sixteen bytes", "bounded", lambda now: [(0, good_v2_batch(now)[:16])]),
        Case(
            "request: two batches",
            "bounded",
            lambda now: [(0, good_v2_batch(now) + good_v2_batch(now)), (1, good_v2_batch(now))],
        ),
        Case("request: trailing bytes after the batch", "bounded", lambda now: [(0, good_v2_batch(now) + b"tail")]),
        Case(
            "request: trailing half batch", "bounded", lambda now: [(0, good_v2_batch(now) + good_v2_batch(now)[:40])]
        ),
        Case(
            "request: bad magic in the second partition",
            "bounded",
            lambda now: [(0, good_v2_batch(now)), (1, batch(good_records(now), magic=9))],
        ),
        Case(
            "request: second batch of bad magic",
            "bounded",
            lambda now: [(0, good_v2_batch(now) + batch(good_records(now), magic=9))],
        ),
        Case("request: null records", "bounded", lambda _: [(0, None)], range(3, 4), difference=NULL_RECORDS),
        Case(
            "request: message of magic 1",
            "bounded",
            lambda now: [(0, message(1, b"v", timestamp=now)), (1, good_v2_batch(now))],
        ),
        Case("request: zstd", "bounded", lambda now: [(0, batch(good_records(now), ZSTD)), (1, good_v2_batch(now))]),
        Case("request: no partitions", "bounded", lambda _: []),
        Case(
            "request: oversized",
            "small",
            lambda now: [(0, batch([Rec(now, value=b"x" * 2000)])), (1, good_v2_batch(now))],
        ),
        Case(
            "request: oversized before wrong crc",
            "small",
            lambda now: [(0, batch([Rec(now, value=b"x" * 2000)], crc=1))],
        ),
        Case(
            "request: transactional batch, no transactional id",
            "bounded",
            lambda now: [(0, transactional_batch(now, 1))],
        ),
        Case(
            "request: transactional after bad magic",
            "bounded",
            lambda now: [(0, batch(good_records(now), magic=9)), (1, transactional_batch(now, 1))],
        ),
        Case(
            "request: bad magic after transactional",
            "bounded",
            lambda now: [(0, transactional_batch(now, 1)), (1, batch(good_records(now), magic=9))],
        ),
        Case(
            "request: bad magic after transactional, with its id",
            "bounded",
            lambda now: [(0, transactional_batch(now, 1)), (1, batch(good_records(now), magic=9))],
            transactional_id="t",
        ),
        Case(
            "request: two transactional producers",
            "bounded",
            lambda now: [(0, transactional_batch(now, 1)), (1, transactional_batch(now, 2))],
            transactional_id="t",
        ),
    ]


def _short_batch_cases() -> list[Case]:
    """Batches that end within their header, each beside good and bad batches."""

    def truncated_batch(now: int, size: int, **changes: int) -> bytes:
        return batch(good_records(now), length=size - 12, **changes)[:size]

    def good_and_bad_partition(now: int) -> Partitions:
        return [(1, batch(good_records(now))), (2, batch([Rec(now * 1000)]))]

    cases = []
    for size in (26, 27, 43, 50, 51, 60):
        cases += [
            Case(
                f"short: {size} bytes",
                "bounded",
                lambda now, s=size: [(0, truncated_batch(now, s)), *good_and_bad_partition(now)],
            ),
            Case(
                f"short: {size} bytes, base offset 1",
                "bounded",
                lambda now, s=size: [(0, truncated_batch(now, s, base_offset=1)), *good_and_bad_partition(now)],
            ),
            Case(
                f"short: {size} bytes in an unknown partition",
                "bounded",
                lambda now, s=size: [(9, truncated_batch(now, s)), *good_and_bad_partition(now)],
            ),
            Case(
                f"short: {size} bytes after a good batch",
                "bounded",
                lambda now, s=size: [
                    (0, batch(good_records(now)) + truncated_batch(now, s)),
                    *good_and_bad_partition(now),
                ],
                versions=range(0, 14),
            ),
        ]
    tails = {
        "zeros": bytes(30),
        "a wrong magic": batch(good_records(0), magic=9),
        "a length where it overflows": batch(good_records(0), length=2**31 - 12),
        "a length of int max": batch(good_records(0), length=2**31 - 1),
        "a length too long": batch(good_records(0), length=5000),
    }
    for what, tail in tails.items():
        for where in (0, 9):
            cases.append(
                Case(
                    f"short: {what} after a good batch in partition {where}",
                    "bounded",
                    lambda now, t=tail, w=where: [(w, batch(good_records(now)) + t), *good_and_bad_partition(now)],
                    versions=range(0, 14),
                )
            )
    return cases


def _elsewhere_cases() -> list[Case]:
    """Errors that a broker reports before it reads a batch, and requests that name a topic or partition twice."""

    def batch_with_bad_time(now: int) -> bytes:
        return batch([Rec(now), Rec(now * 1000)])

    def good_v2_batch(now: int) -> bytes:
        return batch(good_records(now))

    def two_good_batches(now: int) -> bytes:
        return good_v2_batch(now) * 2

    def batch_with_wrong_crc(now: int) -> bytes:
        return batch(good_records(now), crc=1)

    kinds_of_records: dict[str, Callable[[int], bytes]] = {
        "good": good_v2_batch,
        "bad time": batch_with_bad_time,
        "two batches": two_good_batches,
        "no batch": lambda _: b"",
        "wrong crc": batch_with_wrong_crc,
        "damaged": lambda now: batch(good_records(now), GZIP, compressed=b"this is not compressed"),
        "codec 6": lambda now: batch(good_records(now), attributes=6),
        "zstd": lambda now: batch([Rec(now * 1000)], ZSTD),
        "magic 1": lambda now: message(1, b"v", timestamp=now),
    }
    cases = []
    for what, records in kinds_of_records.items():
        cases += [
            Case(f"elsewhere: unknown partition, {what}", "bounded", lambda now, r=records: [(99, r(now))]),
            Case(f"elsewhere: negative partition, {what}", "bounded", lambda now, r=records: [(-1, r(now))]),
            Case(f"elsewhere: unknown topic, {what}", ABSENT, lambda now, r=records: [(0, r(now)), (1, r(now))]),
            Case(
                f"elsewhere: known and unknown, {what}",
                "bounded",
                lambda now, r=records: [(0, r(now)), (99, r(now)), (1, good_v2_batch(now))],
                beside=lambda now, r=records: [
                    ("compacted", [(0, r(now)), (77, batch_with_bad_time(now))]),
                    (ABSENT, [(0, r(now))]),
                ],
            ),
        ]
        for other, second in kinds_of_records.items():
            twice = lambda now, f=records, s=second: [(0, f(now)), (1, good_v2_batch(now)), (0, s(now))]  # noqa: E731
            cases.append(Case(f"elsewhere: a partition twice, {what} then {other}", "bounded", twice))
        cases += [
            Case(
                f"elsewhere: a topic twice, {what}",
                "bounded",
                lambda now: [(0, good_v2_batch(now))],
                beside=lambda now, r=records: [("bounded", [(1, r(now))]), ("open", [(1, batch_with_bad_time(now))])],
            ),
            Case(
                f"elsewhere: topic and partition twice, {what}",
                "bounded",
                lambda now, r=records: [(2, r(now))],
                beside=lambda now: [("open", [(0, good_v2_batch(now))]), ("bounded", [(2, good_v2_batch(now))])],
            ),
        ]
    all_kinds = lambda now: [(kind, [(i, batch_with_bad_time(now)) for i in range(3)]) for kind in TOPIC_KINDS]  # noqa: E731
    return [
        *cases,
        Case(
            "elsewhere: bad in every kind of topic", "bounded", lambda now: [(0, good_v2_batch(now))], beside=all_kinds
        ),
        Case("elsewhere: bad in every kind of topic, acks 1", "open", lambda _: [], acks=1, beside=all_kinds),
        Case(
            "elsewhere: unknown partition, acks 7",
            "bounded",
            lambda now: [(99, batch_with_bad_time(now)), (0, batch_with_bad_time(now))],
            acks=7,
        ),
        Case(
            "elsewhere: a batch that fails the request, then a bad one",
            "bounded",
            lambda now: [(0, good_v2_batch(now) + bytes(30)), (0, batch_with_bad_time(now)), (1, good_v2_batch(now))],
            versions=range(0, 14),
        ),
        Case(
            "elsewhere: a batch that fails the request, then a good one",
            "bounded",
            lambda now: [(0, good_v2_batch(now) + bytes(30)), (0, good_v2_batch(now)), (1, batch_with_bad_time(now))],
            versions=range(0, 14),
        ),
        Case(
            "elsewhere: a bad one, then a good one, acks 0",
            "open",
            lambda now: [(0, batch_with_wrong_crc(now)), (0, good_v2_batch(now))],
            acks=0,
        ),
        Case(
            "elsewhere: a good one, then a bad one, acks 0",
            "open",
            lambda now: [(0, good_v2_batch(now)), (0, batch_with_wrong_crc(now))],
            acks=0,
        ),
        Case("elsewhere: unknown partition, acks 0", "bounded", lambda now: [(99, batch_with_bad_time(now))], acks=0),
    ]


def _legacy_cases() -> list[Case]:
    """Magic 0 and 1 in Produce v0 to v2, which only Kafka 3.9 still accepts."""
    cases = []
    old = range(0, 3)
    for magic in (0, 1):
        for what, offsets in {
            "good": (0, -HOUR),
            "too new": (0, 2 * HOUR),
            "too old": (-2 * DAY,),
            "micro": (10**15,),
        }.items():
            plain: Build = one_partition(
                lambda now, m=magic, o=offsets: b"".join(message(m, b"v", timestamp=now + x) for x in o)
            )
            cases.append(Case(f"legacy: plain magic {magic}, {what}", "bounded", plain, old))
            for codec_name, codec in (("gzip", GZIP), ("snappy", SNAPPY), ("xerial", XERIAL), ("lz4", LZ4)):
                wrapped: Build = one_partition(
                    lambda now, m=magic, o=offsets, c=codec: wrapper(
                        m, [message(m, b"v", timestamp=now + x, offset=i) for i, x in enumerate(o)], c, timestamp=now
                    )
                )
                if (magic, codec) != (0, LZ4):  # magic 0 has another LZ4 header checksum, which is tested below
                    cases.append(Case(f"legacy: {codec_name} wrapper magic {magic}, {what}", "bounded", wrapped, old))
    v1 = lambda now, **kw: message(1, b"v", timestamp=now, **kw)  # noqa: E731
    changes: dict[str, Build] = {
        "wrong crc": one_partition(lambda now: v1(now, crc=1)),
        "inner wrong crc": one_partition(lambda now: wrapper(1, [v1(now, crc=1)], GZIP, timestamp=now)),
        "inner of other magic": one_partition(lambda now: wrapper(1, [message(0, b"v")], GZIP, timestamp=now)),
        "nested compression": one_partition(
            lambda now: wrapper(1, [wrapper(1, [v1(now)], GZIP, timestamp=now)], GZIP, timestamp=now)
        ),
        "null value in a wrapper": one_partition(lambda now: message(1, None, key=None, codec=GZIP, timestamp=now)),
        "empty wrapper": one_partition(lambda now: wrapper(1, [], GZIP, timestamp=now, offset=0)),
        "two wrappers": one_partition(lambda now: wrapper(1, [v1(now)], GZIP, timestamp=now) * 2),
        "zstd wrapper": one_partition(lambda now: wrapper(1, [v1(now)], ZSTD, timestamp=now)),
        "codec 6": one_partition(lambda now: v1(now, codec=6)),
        "garbage in a wrapper": one_partition(lambda now: message(1, b"garbage", key=None, codec=GZIP, timestamp=now)),
        "claims log append time": one_partition(lambda now: v1(now, flags=LOG_APPEND_TIME_FLAG)),
        "claims log append time, wrapper": one_partition(
            lambda now: wrapper(1, [v1(now)], GZIP, timestamp=now, flags=LOG_APPEND_TIME_FLAG)
        ),
        "inner offsets wrong": one_partition(
            lambda now: wrapper(1, [v1(now, offset=5), v1(now, offset=9)], GZIP, timestamp=now)
        ),
        "wrapper offset too small": one_partition(
            lambda now: wrapper(1, [v1(now, offset=5)], GZIP, timestamp=now, offset=2)
        ),
        "mixed magic": one_partition(lambda now: v1(now) + message(0, b"v")),
        "empty records": one_partition(lambda _: b""),
        "v2 batch in an old request": one_partition(lambda now: batch(good_records(now))),
        "bad v2 batch in an old request": one_partition(lambda now: batch([Rec(now * 1000)])),
        "two v2 batches in an old request": one_partition(lambda now: batch(good_records(now)) * 2),
        "v2 batch and a length of 0 in an old request": one_partition(lambda now: batch(good_records(now)) + bytes(40)),
        "v2 batch and one with wrong crc in an old request": one_partition(
            lambda now: batch(good_records(now)) + batch(good_records(now), crc=1)
        ),
        "v2 batch and half a batch in an old request": one_partition(
            lambda now: batch(good_records(now)) + batch(good_records(now))[:40]
        ),
        "v2 batch and a message in an old request": one_partition(lambda now: batch(good_records(now)) + v1(now)),
        "a message and a v2 batch in an old request": one_partition(lambda now: v1(now) + batch(good_records(now))),
        "a message and a compressed v2 batch in an old request": one_partition(
            lambda now: v1(now) + batch(good_records(now), GZIP)
        ),
        "a message and a v2 batch with wrong crc in an old request": one_partition(
            lambda now: v1(now) + batch(good_records(now), crc=1)
        ),
        "a message too new and a v2 batch in an old request": one_partition(
            lambda now: v1(now + 2 * HOUR) + batch(good_records(now))
        ),
        "a message, a v2 batch and a message too new in an old request": one_partition(
            lambda now: v1(now) + batch(good_records(now)) + v1(now + 2 * HOUR)
        ),
        "a message of magic 0 and a v2 batch in an old request": one_partition(
            lambda now: message(0, b"v") + batch(good_records(now))
        ),
        "a wrapper and a v2 batch in an old request": one_partition(
            lambda now: wrapper(1, [v1(now)], GZIP, timestamp=now) + batch(good_records(now))
        ),
        "v2 batch and a length of int max in an old request": one_partition(
            lambda now: batch(good_records(now)) + batch(good_records(now), length=2**31 - 1)
        ),
        "length of int max in an old request": one_partition(lambda now: batch(good_records(now), length=2**31 - 1)),
        "magic 1 in a v2 batch in an old request": one_partition(lambda now: batch(good_records(now), magic=1)),
        "null key": one_partition(lambda now: v1(now) + v1(now, key=None)),
        "null key in a wrapper": one_partition(
            lambda now: wrapper(1, [v1(now), v1(now, key=None, offset=1)], GZIP, timestamp=now)
        ),
    }
    for what, build in changes.items():
        kinds = ("compacted",) if "key" in what else ("bounded", "append-time")
        cases += [Case(f"legacy: {what}", kind, build, old) for kind in kinds]
    return [*cases, Case("legacy: null records", "bounded", one_partition(lambda _: None), range(2, 3))]


def _framing_cases() -> list[Case]:
    """Batches that consumers read differently from brokers; the proxy of this suite has `framing: broker`."""
    made = {**AMBIGUOUS, **UNREADABLE, **HONEST}
    return [Case(f"framing: {name}", "open", one_partition(build), range(11, 14)) for name, build in made.items()]


CASES = [
    *_times_cases(),
    *_key_cases(),
    *_header_cases(),
    *_payload_cases(),
    *_request_cases(),
    *_short_batch_cases(),
    *_elsewhere_cases(),
    *_legacy_cases(),
    *_framing_cases(),
]
