"""Only the batches that belong to the range are returned from a broker's response."""

import pytest

from sluicegate.pipeline.kafka import fetching
from sluicegate.pipeline.kafka.cluster import KafkaCluster, OffsetRange, TopicPartition
from sluicegate.pipeline.kafka.fetching import stored_batches
from sluicegate.pipeline.source.decoding import BatchDecoder
from sluicegate.protocol.fetch_response import FetchedPartition
from tests.wire.batches import CODECS, Rec, batch, message, wrapper

NOW = 1_800_000_000_000
OF = TopicPartition("t", 0)


def wrapped_messages(magic: int, first: int, count: int) -> bytes:
    """Return a wrapper. Inner offsets of magic 1 are relative to the wrapper, those of magic 0 are absolute."""
    inner = [message(magic, b"v%d" % (first + i), timestamp=NOW, offset=first * (1 - magic) + i) for i in range(count)]
    return wrapper(magic, inner, CODECS["gzip"], offset=first + count - 1, timestamp=NOW)


LOGS = {
    "wrappers of magic 0": wrapped_messages(0, 0, 5) + wrapped_messages(0, 5, 5) + wrapped_messages(0, 10, 5),
    "wrappers of magic 1": wrapped_messages(1, 0, 5) + wrapped_messages(1, 5, 5) + wrapped_messages(1, 10, 5),
    "plain messages": b"".join(message(1, b"v%d" % i, timestamp=NOW, offset=i) for i in range(15)),
    "batches": b"".join(batch([Rec(NOW, value=b"v")] * 5, base_offset=first) for first in (0, 5, 10)),
    "a wrapper after a gap": wrapped_messages(1, 0, 5) + wrapped_messages(1, 10, 5),
    "a wrapper after a batch": batch([Rec(NOW)] * 5, base_offset=0) + wrapped_messages(1, 5, 10),
}


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS.keys())
@pytest.mark.parametrize(("start", "end"), [(0, 15), (0, 7), (3, 12), (6, 8), (11, 14), (0, 1), (14, 15), (5, 10)])
def test_an_offset_range_yields_exactly_its_records(
    monkeypatch: pytest.MonkeyPatch, log: bytes, start: int, end: int
) -> None:
    response = FetchedPartition(0, 15, 0, (), memoryview(log))
    monkeypatch.setattr(fetching, "_fetch", lambda *_: response)
    cluster = KafkaCluster([], None)  # receives no requests
    decoder = BatchDecoder()
    there: list[int] = []

    for each in stored_batches(cluster, OffsetRange(OF, start, end), committed=True):
        there += [int(offset) for offset in decoder.decode(each).offset if start <= offset < end]

    gap = range(5, 10) if log == LOGS["a wrapper after a gap"] else range(0)
    assert there == [offset for offset in range(start, end) if offset not in gap]
