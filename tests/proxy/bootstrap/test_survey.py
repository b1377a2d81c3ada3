"""A survey of a cluster with many topics sends a bounded number of requests, all of which only read."""

import pytest
import yaml

from sluicegate.config.upstream import Sasl, Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.config.values.password import SecretText
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from sluicegate.protocol.messages.handshake import SASL_AUTHENTICATE_RESPONSE, SASL_HANDSHAKE_RESPONSE
from sluicegate.proxy.bootstrap.first_file import lines_of
from sluicegate.proxy.bootstrap.survey import MOST_TOPICS, SurveyFailed, TopicSurvey, broker_list, survey
from tests.config.reading import load_text
from tests.proxy.scripted_broker import (
    ScriptedBroker,
    api_versions_response,
    asked_topics,
    metadata_of_brokers,
    topic_settings,
)

SETTINGS = {"message.timestamp.type": "CreateTime", "max.message.bytes": "1048588"}


@pytest.mark.long
async def test_survey_queries_first_ten_thousand_topics_and_counts_the_rest() -> None:
    names = [f"t{i:05}" for i in range(MOST_TOPICS + 3)]
    partition = {"error_code": 0, "partition_index": 0, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
    told = [{"error_code": 0, "name": name, "partitions": [partition]} for name in names]
    own = [{"error_code": 0, "name": "__consumer_offsets", "is_internal": True, "partitions": []}]
    questions: list[list[str]] = []

    def respond_with_topics(version: int, body: bytes) -> bytes:
        all_of_them = METADATA_REQUEST.parse(body, version)["topics"] is None
        node = {"node_id": 1, "host": "kafka", "port": 9092}
        return METADATA_RESPONSE.build({"brokers": [node], "topics": told + own if all_of_them else []}, version)

    def respond_with_settings(version: int, body: bytes) -> bytes:
        questions.append(asked_topics(version, body))
        return response_settings(version, body)

    response_settings = topic_settings(lambda _: SETTINGS)
    async with ScriptedBroker(
        {ApiKey.METADATA: respond_with_topics, ApiKey.DESCRIBE_CONFIGS: respond_with_settings}
    ) as broker:
        upstream = Upstream(bootstrap=(broker.address,), connect_timeout_seconds=300)
        found = await survey(upstream)

    assert len(found.topics) == MOST_TOPICS
    assert max(map(len, questions)) == 500
    assert sum(map(len, questions)) == MOST_TOPICS
    assert set(broker.asked) == {ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.DESCRIBE_CONFIGS}
    lines = list(lines_of(found, upstream.bootstrap, {}, HostPort("127.0.0.1", 19092)))
    assert "# 3 more topics are not in this file." in lines
    assert "__consumer_offsets" not in "".join(lines)
    assert len(lines) < 50


async def test_a_login_that_sees_no_topic_is_reported_with_the_brokers() -> None:
    """A broker hides the topics that a principal may not describe, so that the list is empty and has no error."""
    offered = {"error_code": 0, "mechanisms": ["PLAIN"]}
    accepted = {"error_code": 0, "error_message": None, "auth_bytes": b""}
    login = {
        ApiKey.SASL_HANDSHAKE: lambda version, _: SASL_HANDSHAKE_RESPONSE.build(offered, version),
        ApiKey.SASL_AUTHENTICATE: lambda version, _: SASL_AUTHENTICATE_RESPONSE.build(accepted, version),
    }
    sasl = Sasl(mechanism="PLAIN", username="bob", password=SecretText("secret"))
    async with ScriptedBroker(
        {**login, ApiKey.METADATA: metadata_of_brokers((1, "kafka-1", 9092), (2, "kafka-2", 9092))}
    ) as broker:
        with pytest.raises(SurveyFailed) as raised:
            await survey(Upstream(bootstrap=(broker.address,), sasl=sasl))

    assert str(raised.value) == (
        "found brokers 1 at kafka-1:9092, 2 at kafka-2:9092, but bob sees no topic: allow it DESCRIBE and "
        "DESCRIBE_CONFIGS on topics"
    )


async def test_a_cluster_without_topics_sets_no_bound_by_itself() -> None:
    async with ScriptedBroker({ApiKey.METADATA: metadata_of_brokers((1, "kafka-1", 9092))}) as broker:
        upstream = Upstream(bootstrap=(broker.address,))
        lines = list(lines_of(await survey(upstream), upstream.bootstrap, {}, HostPort("127.0.0.1", 19092)))

    defaults = lines[lines.index("defaults:") :]
    assert defaults[1] == "  mode: observe"
    assert [line for line in defaults[2:] if not line.lstrip().startswith("#")] == []


@pytest.mark.parametrize(
    ("sasl", "declaration"),
    [
        ({"mechanism": "SCRAM-SHA-512", "username": "u", "password": "p"}, "user_name_is_principal: [SCRAM-SHA-512]"),
        ({"mechanism": "PLAIN", "username": "u", "password": "p"}, "user_name_is_principal: [PLAIN]"),
        ({"mechanism": "OAUTHBEARER", "token_file": "/run/token"}, "sasl.oauthbearer.sub.claim.name: sub"),
    ],
)
def test_generated_config_comment_asks_how_brokers_derive_principals(sasl: dict[str, str], declaration: str) -> None:
    """Only the operator knows the answer. Without the comment sign, the line is a valid declaration."""
    address = HostPort("127.0.0.1", 19092)
    text = "\n".join(lines_of(TopicSurvey({1: address}, {}, 0, ()), (address,), {"sasl": sasl}, address))
    listen = load_text(text).config.listen
    answered = load_text(text.replace(f"# {declaration}", declaration)).config.listen

    assert not listen.declares_principals
    assert answered.declares_principals
    assert "principal at the brokers?" in text.replace("principals", "principal")


@pytest.mark.parametrize(("port", "base"), [(19092, 19100), (29092, 29100), (65520, 65523)])
def test_generated_config_lists_all_brokers_and_uses_listen_ports(port: int, base: int) -> None:
    """The port of the last broker must not exceed 65535."""
    found = TopicSurvey({node: HostPort(f"kafka-{node}", 9092) for node in range(1, 13)}, {}, 0, ())
    given = HostPort("kafka-1", 9092)

    text = "\n".join(lines_of(found, (given,), {}, HostPort("127.0.0.1", port)))

    config = yaml.safe_load(text)
    assert config["upstream"]["bootstrap"] == [f"kafka-{node}:9092" for node in range(1, 13)]
    assert config["listen"]["broker_port_base"] == base
    assert "here brokers 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12" in text
    assert broker_list(found.brokers).count("kafka-") == 12


async def test_lists_brokers_that_do_not_support_describe_configs() -> None:
    """librdkafka's mock cluster is such a broker."""
    partition = {"error_code": 0, "partition_index": 0, "leader_id": 1, "replica_nodes": [1], "isr_nodes": [1]}
    topic = {"error_code": 0, "name": "orders", "partitions": [partition]}

    def respond_with_topics(version: int, _body: bytes) -> bytes:
        node = {"node_id": 1, "host": "kafka", "port": 9092}
        return METADATA_RESPONSE.build({"brokers": [node], "topics": [topic]}, version)

    answers = {
        ApiKey.API_VERSIONS: api_versions_response(ApiKey.PRODUCE, ApiKey.METADATA),
        ApiKey.METADATA: respond_with_topics,
    }
    async with ScriptedBroker(answers) as broker:
        found = await survey(Upstream(bootstrap=(broker.address,)))

    text = "\n".join(lines_of(found, (broker.address,), {}, HostPort("127.0.0.1", 19092)))
    assert "kafka:9092" in yaml.safe_load(text)["upstream"]["bootstrap"]
    assert "# Unknown: the brokers do not support DescribeConfigs" in text
    assert "# 1 more topics are not in this file." in text
