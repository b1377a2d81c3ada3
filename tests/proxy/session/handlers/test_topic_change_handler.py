"""No request changes the proxies' own topics, on both paths, in each version, by name and by id."""

import struct
from typing import Any

import pytest

from sluicegate.protocol.api import APIS
from sluicegate.protocol.headers import response_body_at
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from sluicegate.proxy.responses.refused_changes import MOST_ELEMENTS, TOPIC_CHANGES
from tests.bounds.frames import sized_request
from tests.oracle.definitions import message_definition
from tests.oracle.kafka_java import KAFKA_NEWEST
from tests.proxy.session.playbook import Playbook
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import produce_body, topic_data
from tests.wire.topic_changes import NO_ID, REQUESTS, SCHEMAS, codes_in

OWN, HISTORY, OTHER = "sluicegate-state", "sluicegate-state-history", "sluicegate-state-2"
KEYS = {api.name: api.key for api in APIS.values()}
REFUSED, REFUSED_FOR_CLUSTER, NOT_ATTEMPTED, SEND_AGAIN = 29, 31, 55, 7
# Brokers authorize these as operations on the cluster (KafkaApis and ControllerApis in 4.3).
OF_CLUSTER = {"WriteTxnMarkers", "AlterPartitionReassignments", "ElectLeaders", "AlterReplicaLogDirs"}
BOTH_PATHS = pytest.mark.parametrize("has_fast_path", [False, True] if HAS_FAST_PATH else [False])
VERSIONS = [(name, v) for name in REQUESTS for v in range(APIS[KEYS[name]].max_version + 1)]
# Requests that name topics but do not change them: they read, or change groups' offsets and other state, or ACLs.
CHANGE_NO_TOPIC = {
    *("Fetch", "ListOffsets", "Metadata", "OffsetForLeaderEpoch", "DescribeProducers", "DescribeTransactions"),
    *("DescribeTopicPartitions", "DescribeLogDirs", "DescribeQuorum", "DescribeConfigs", "ListPartitionReassignments"),
    *("OffsetCommit", "OffsetFetch", "TxnOffsetCommit", "OffsetDelete", "ConsumerGroupHeartbeat"),
    *("ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge", "InitializeShareGroupState", "ReadShareGroupState"),
    *("WriteShareGroupState", "DeleteShareGroupState", "ReadShareGroupStateSummary", "DescribeShareGroupOffsets"),
    *("AlterShareGroupOffsets", "DeleteShareGroupOffsets", "StreamsGroupHeartbeat"),
    "StreamsGroupTopologyDescriptionUpdate",
    *("CreateAcls", "DeleteAcls", "DescribeAcls"),
}


def proxy(has_fast_path: bool = False, **state: str) -> Playbook:
    return Playbook(has_fast_path, SLUICEGATE__STATE__TOPIC=OWN, **state)


def frame_of(name: str, version: int, value: Any) -> bytes:
    return sized_request(KEYS[name], version, SCHEMAS[f"{name}Request"].build(value, version), correlation_id=7)


def response_in(play: Playbook, name: str, version: int) -> Any:
    frame = bytes(play.client.sent)
    size, correlation_id = struct.unpack_from(">ii", frame)
    assert (size, correlation_id) == (len(frame) - 4, 7)
    at = 4 + response_body_at(frame[4:], APIS[KEYS[name]].response_header_version(version))
    return SCHEMAS[f"{name}Response"].parse(frame[at:], version)


def names_topics(spec: Any) -> bool:
    """Return whether a message of Kafka's has a field that names topics."""
    return any(
        "topic" in field["name"].lower()
        or field["name"] in ("ResourceName", "ResourceNameFilter")
        or names_topics(field)
        for field in spec.get("fields", ())
    )


def test_each_api_with_topic_names_is_guarded_or_known_to_change_no_topic() -> None:
    naming = {api.name for api in APIS.values() if names_topics(message_definition(KAFKA_NEWEST, f"{api.name}Request"))}
    guarded = {*TOPIC_CHANGES, "Produce"}

    assert naming <= guarded | CHANGE_NO_TOPIC, (
        f"{sorted(naming - guarded - CHANGE_NO_TOPIC)}: if it can change a topic, guard it in TOPIC_CHANGES"
    )
    assert set(REQUESTS) == set(TOPIC_CHANGES) == {a.name for a in APIS.values() if a.handling.name == "GUARD"}


@BOTH_PATHS
@pytest.mark.parametrize(("name", "version"), VERSIONS)
@pytest.mark.parametrize("own", [OWN, HISTORY])
def test_changes_of_the_proxys_own_topics_are_rejected(own: str, name: str, version: int, has_fast_path: bool) -> None:
    play = proxy(has_fast_path)

    play.from_client(frame_of(name, version, REQUESTS[name](own)))

    assert play.broker.sent == b""
    expected = REFUSED_FOR_CLUSTER if name in OF_CLUSTER else REFUSED
    codes = [code for code in codes_in(response_in(play, name, version)) if code]
    assert codes
    assert set(codes) == {expected}
    assert play.parts.counters.request_errors == {(name, "TOPIC_AUTHORIZATION_FAILED"): 1}


@BOTH_PATHS
@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_changes_of_other_topics_are_forwarded_unchanged(name: str, version: int, has_fast_path: bool) -> None:
    for named in (OTHER, "orders"):
        frame = frame_of(name, version, REQUESTS[name](named))
        with_state, without = proxy(has_fast_path), Playbook(has_fast_path)

        for play in (with_state, without):
            play.from_client(frame)
            play.from_broker(struct.pack(">ii", 4, 7))

        assert with_state.broker.sent == without.broker.sent == frame
        assert with_state.client.sent == without.client.sent == struct.pack(">ii", 4, 7)


@pytest.mark.parametrize("name", sorted(set(REQUESTS) - OF_CLUSTER))
def test_request_with_an_own_topic_is_rejected_for_all_its_topics(name: str) -> None:
    play, version = proxy(), APIS[KEYS[name]].max_version

    play.from_client(frame_of(name, version, REQUESTS[name](OTHER, OWN)))

    assert play.broker.sent == b""
    assert [code for code in codes_in(response_in(play, name, version)) if code] == [NOT_ATTEMPTED, REFUSED]


def test_a_setting_of_a_broker_named_like_an_own_topic_is_forwarded() -> None:
    play, value = proxy(), REQUESTS["IncrementalAlterConfigs"](OWN)
    value["resources"][0]["resource_type"] = 4
    frame = frame_of("IncrementalAlterConfigs", 1, value)

    play.from_client(frame)

    assert play.broker.sent == frame


def test_deletion_of_an_own_topic_by_id_is_rejected() -> None:
    own_id, other_id = b"o" * 16, b"p" * 16
    for topic_id, is_refused in ((own_id, True), (other_id, False)):
        play = proxy()
        play.parts.names.learn([(own_id, OWN), (other_id, OTHER)])
        frame = frame_of("DeleteTopics", 6, {"topics": [{"name": None, "topic_id": topic_id}], "timeout_ms": 1})

        play.from_client(frame)

        assert play.broker.sent == (b"" if is_refused else frame)
        if is_refused:
            (entry,) = response_in(play, "DeleteTopics", 6)["responses"]
            assert (entry["topic_id"], entry["error_code"], entry["name"]) == (own_id, REFUSED, None)
    assert NO_ID not in (own_id, other_id)


def test_unknown_topic_id_in_deletion_is_first_resolved_by_the_broker() -> None:
    play = proxy()
    frame = frame_of("DeleteTopics", 6, {"topics": [{"name": None, "topic_id": b"o" * 16}], "timeout_ms": 1})

    play.from_client(frame)

    (key,) = struct.unpack_from(">h", play.broker.sent, 4)
    assert key == KEYS["Metadata"]


def test_a_request_with_too_many_elements_to_read_is_not_forwarded() -> None:
    play, value = proxy(), REQUESTS["IncrementalAlterConfigs"](OTHER)
    value["resources"][0]["configs"] *= MOST_ELEMENTS + 1

    play.from_client(frame_of("IncrementalAlterConfigs", 1, value))
    play.loop.run_steps()

    assert play.broker.sent == b""
    assert play.parts.counters.protocol_errors == 1


@BOTH_PATHS
@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("mode", ["reject", "observe"])
def test_batches_for_the_proxys_own_topics_are_rejected_in_each_mode(
    version: int, mode: str, has_fast_path: bool
) -> None:
    own_id, other_id = b"o" * 16, b"p" * 16
    play = Playbook(has_fast_path, SLUICEGATE__STATE__TOPIC=OWN, SLUICEGATE__DEFAULTS__MODE=mode)
    play.parts.names.learn([(own_id, OWN), (other_id, OTHER)])
    own, other = (OWN, OTHER) if version < 13 else (own_id, other_id)
    topics = [topic_data(each, (0, batch([Rec(1)]))) for each in (other, own)]

    for correlation_id in (1, 2):  # the second request comes after the fast path has learned from the first
        play.from_client(sized_request(0, version, produce_body(version, topics[1:]), correlation_id))
    play.from_client(sized_request(0, version, produce_body(version, topics), 3))
    play.loop.run_steps()

    assert play.broker.sent == b""
    responses, sent = [], bytes(play.client.sent)
    while sent:
        (size,) = struct.unpack_from(">i", sent)
        frame = sent[4 : 4 + size]
        responses.append(PRODUCE_RESPONSE.parse(frame[response_body_at(frame, 1 if version >= 9 else 0) :], version))
        sent = sent[4 + size :]
    codes = [[each["partition_responses"][0]["error_code"] for each in one["responses"]] for one in responses]
    assert codes == [[REFUSED], [REFUSED], [SEND_AGAIN, REFUSED]]
    if version >= 8:
        message = responses[0]["responses"][0]["partition_responses"][0]["error_message"]
        assert message.startswith("only sluicegate writes to this topic")


def test_batch_with_acks_0_for_an_own_topic_closes_the_connection() -> None:
    play = proxy()

    play.from_client(sized_request(0, 9, produce_body(9, [topic_data(OWN, (0, batch([Rec(1)])))], acks=0)))
    play.loop.run_steps()

    assert play.broker.sent == b""
    assert play.parts.counters.acks_0_closed == 1
