"""Topic ids picked out of Metadata answers, against the schema."""

import pytest

from protocol.errors import MalformedMessage
from protocol.messages import metadata
from protocol.topic_ids import topic_names_by_id
from tests.oracle.definitions import RandomMessage
from tests.oracle.kafka_java import KAFKA_NEW


@pytest.mark.parametrize("version", range(10, 14))
@pytest.mark.parametrize("seed", range(20))
def test_it_finds_what_the_schema_finds(version: int, seed: int) -> None:
    value = RandomMessage(KAFKA_NEW, "MetadataResponse", version, seed).ours
    for topic in value["topics"][:1]:
        topic["error_code"] = 0
    body = metadata.RESPONSE.build(value, version)
    _, behind_brokers = metadata.RESPONSE_HEAD.parse(body, version)

    found = list(topic_names_by_id(body, behind_brokers))

    assert found == [(t["topic_id"], t["name"]) for t in value["topics"] if t["error_code"] == 0 and t["name"]]


def test_a_cut_answer_is_malformed() -> None:
    topic = {"error_code": 0, "name": "t", "topic_id": bytes(range(16)), "partitions": []}
    body = metadata.RESPONSE.build({"brokers": [], "topics": [topic]}, 12)
    _, behind_brokers = metadata.RESPONSE_HEAD.parse(body, 12)

    with pytest.raises(MalformedMessage):
        list(topic_names_by_id(body[:-8], behind_brokers))
