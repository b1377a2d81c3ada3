"""Writes a partition that is large enough for several tasks, with invalid times, aborted transactions, several
producers and codecs."""

import struct
from collections import Counter
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer

from tests.integration.topics import create_topic
from tests.pipeline.polluted import DAMAGES, HOUR, UNLIMITED, wrong_timestamp
from tests.wire.batches import LZ4, NONE, ZSTD, Rec, batch, record
from tests.wire.raw_client import RawClient, topic_data

RECORDS_A_BATCH = 5_000
_CODECS = (LZ4, NONE, ZSTD)
_EVERY = 9
_TRANSACTIONS = 4
_RECORDS_A_TRANSACTION = 700
COMMITTED_RECORDS = 2 * _RECORDS_A_TRANSACTION
"""The number of records in the two transactions that were not aborted."""


def large_partition(
    bootstrap: str,
    now_ms: int,
    batches: int = 150,
    topic: str | None = None,
    every: int = _EVERY,
    order: Iterable[int] | None = None,
) -> str:
    """Write a topic of one partition with batches of 5,000 records from the 20 hours before now, and return its name.
    Among the batches are four transactions; the first and the third are aborted. One batch in `every` is damaged.

    `order`: the numbers of the batches to write, by default each number once.
    """
    name = topic or create_topic(bootstrap, UNLIMITED, 1)
    payloads = [_payload(n) for n in range(4)]
    address = bootstrap.split(",", maxsplit=1)[0]
    places = [batches * (2 * i + 1) // (2 * _TRANSACTIONS) for i in range(_TRANSACTIONS)]
    with RawClient(address, timeout=60) as client:
        for i in range(batches) if order is None else order:
            time = now_ms - 20 * HOUR + 20 * HOUR * i // batches
            if (damage := _damage_of(i, every)) is not None:
                time = wrong_timestamp(damage, time)
            data = batch(
                (),
                _CODECS[i % len(_CODECS)],
                payload=payloads[i % len(payloads)],
                count=RECORDS_A_BATCH,
                base_timestamp=time,
                max_timestamp=time + RECORDS_A_BATCH,
            )
            answer: Any = client.produce(9, [topic_data(name, (0, data))])
            assert answer["responses"][0]["partition_responses"][0]["error_code"] == 0, answer
            if i in places:
                _transaction(bootstrap, name, time, aborted=places.index(i) % 2 == 0)
    return name


def damaged_records(batches: int, every: int = _EVERY) -> Counter[str]:
    """Return the number of records with each damage that `large_partition` writes."""
    damages = (_damage_of(i, every) for i in range(batches))
    return Counter(damage for damage in damages if damage is not None for _ in range(RECORDS_A_BATCH))


def _damage_of(batch: int, every: int) -> str | None:
    return DAMAGES[batch // every % len(DAMAGES)] if batch % every == every - 1 else None


def _payload(number: int) -> bytes:
    """Return the payload of a batch in which some records have no key."""
    return b"".join(
        record(Rec(i, None if i % 8 == 0 else b"key-%d" % (i % 50), struct.pack(">ii", number, i)), i, 0)
        for i in range(RECORDS_A_BATCH)
    )


def _transaction(bootstrap: str, topic: str, time_ms: int, *, aborted: bool) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-{time_ms}"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for i in range(_RECORDS_A_TRANSACTION):
        producer.produce(topic, b"in a transaction", b"k%d" % i, 0, timestamp=max(time_ms, 1))
    if aborted:
        producer.flush(60)
        producer.abort_transaction(60)
    else:
        producer.commit_transaction(60)
