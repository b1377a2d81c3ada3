"""Topic names are learned from the cluster: known names, ids with their names, and unknown ids."""

from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from sluicegate.proxy.responses.topic_names import MAX_REQUESTED_IDS, TopicNames, metadata_request, names_in
from tests.wire.cost import cpu_seconds_of_call

IDS = [bytes([n]) * 16 for n in range(1, 9)]
NOW = 5_000_000


def test_only_topic_names_from_a_broker_are_known() -> None:
    names = TopicNames()
    names.learn([(None, "orders"), (IDS[0], "bills")])

    assert names.is_known("orders")
    assert names.is_known("bills")
    assert not names.is_known("invented")
    assert dict(names.by_id) == {IDS[0]: "bills"}


def test_invalid_topic_names_are_not_learned() -> None:
    names = TopicNames()
    names.learn([(IDS[0], "a" * 250), (IDS[1], "a b"), (None, ""), (IDS[2], "..")])

    assert not names.by_id
    assert not names.is_known("a b")


def test_the_oldest_topic_names_are_forgotten_beyond_a_bound() -> None:
    bound = 100_000
    names = TopicNames()
    names.learn([(IDS[0], "kept"), (IDS[1], "forgotten")])
    names.learn((n.to_bytes(16, "little"), f"t{n}") for n in range(2**40, 2**40 + bound - 2))
    names.learn([(IDS[0], "kept")])  # learned again

    names.learn([(IDS[2], "newest")])

    assert len(names.by_id) == bound
    assert names.is_known("kept")
    assert names.by_id[IDS[0]] == "kept"
    assert not names.is_known("forgotten")
    assert IDS[1] not in names.by_id


def test_an_unknown_topic_id_is_requested_at_most_once_a_second() -> None:
    names = TopicNames()
    asked = names.missing([IDS[0], IDS[1], IDS[0]], NOW)
    names.learn([(IDS[1], "t")])
    names.note_requested(asked, NOW)

    assert asked == IDS[:2]
    assert names.missing(IDS[:3], NOW + 999) == [IDS[2]]
    assert names.missing(IDS[:3], NOW + 1000) == [IDS[0], IDS[2]]


def test_one_metadata_request_names_at_most_a_thousand_ids() -> None:
    names = TopicNames()
    ids = [n.to_bytes(16, "big") for n in range(1, 60_001)]

    assert names.missing(ids, NOW) == ids[:MAX_REQUESTED_IDS]


def test_remembered_unknown_topic_ids_are_bounded() -> None:
    names = TopicNames()
    ids = [n.to_bytes(16, "big") for n in range(1, 60_001)]
    names.note_requested(ids, NOW)

    assert names.missing(ids[-10_000:], NOW) == []
    assert names.missing(ids[:2], NOW) == ids[:2]


def test_metadata_request_equals_schema_encoding() -> None:
    frame = metadata_request(IDS, -1)

    body = METADATA_REQUEST.build(
        {"topics": [{"topic_id": i, "name": None} for i in IDS], "allow_auto_topic_creation": False}, 12
    )
    assert frame.endswith(body)
    assert METADATA_REQUEST.parse(frame[len(frame) - len(body) :], 12)["topics"][0]["name"] is None


def metadata_response(count: int, code: int) -> bytearray:
    topics = [
        {"error_code": code, "name": None if code else f"t{n}", "topic_id": n.to_bytes(16, "big"), "partitions": []}
        for n in range(1, count + 1)
    ]
    return bytearray(bytes(4) + b"\0" + METADATA_RESPONSE.build({"brokers": [], "topics": topics}, 12))


def test_the_names_of_existing_topics_are_read_from_the_response() -> None:
    assert names_in(metadata_response(2, 0)) == [((1).to_bytes(16, "big"), "t1"), ((2).to_bytes(16, "big"), "t2")]
    assert names_in(metadata_response(2, 100)) == []


def test_metadata_encoding_is_faster_than_construct_schema() -> None:
    """construct takes about 15 us for each topic."""
    frame = metadata_response(1000, 100)
    by_construct = cpu_seconds_of_call(lambda: METADATA_RESPONSE.parse(frame[5:], 12))

    assert cpu_seconds_of_call(lambda: (metadata_request(IDS * 125, -1), names_in(frame))) < by_construct / 2


def test_requested_topic_ids_are_swept_after_one_second() -> None:
    names = TopicNames()
    ids = [bytes([number]) * 16 for number in range(5)]
    names.note_requested(ids[:3], now_ms=0)
    names.note_requested(ids[3:], now_ms=900)

    names.sweep(now_ms=1000)

    assert names.missing(ids, now_ms=950) == ids[:3]
