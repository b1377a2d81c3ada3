"""Responses may be followed by bytes, as some brokers send them; broken responses are errors."""

from collections.abc import Callable
from functools import partial

import pytest

from sluicegate.config.upstream import Upstream
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.messages.cluster import METADATA_RESPONSE
from sluicegate.proxy.bootstrap.survey import SurveyFailed, survey
from sluicegate.proxy.cluster import response_bodies
from sluicegate.proxy.cluster.broker_client import ask_any_broker
from sluicegate.proxy.cluster.broker_settings import ask_for_settings
from tests.proxy.scripted_broker import ScriptedBroker, api_versions_response, topic_settings

Answer = Callable[[int, bytes], bytes]
SURPLUS = b"\0"


def metadata_of_one_topic(version: int, _body: bytes) -> bytes:
    node = {"node_id": 1, "host": "kafka", "port": 9092}
    topic = {"error_code": 0, "name": "orders", "partitions": []}
    return METADATA_RESPONSE.build({"brokers": [node], "topics": [topic]}, version)


def append_surplus_bytes(answer: Callable[[int, bytes], object]) -> Answer:
    def respond_with_surplus(version: int, body: bytes) -> bytes:
        whole = answer(version, body)
        assert isinstance(whole, bytes)
        return whole + SURPLUS

    return respond_with_surplus


async def test_bytes_after_the_end_of_each_response_are_ignored_and_logged_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(response_bodies, "_reported", set())
    answers: dict[ApiKey, Callable[[int, bytes], object]] = {
        ApiKey.API_VERSIONS: api_versions_response(),
        ApiKey.METADATA: metadata_of_one_topic,
        ApiKey.DESCRIBE_CONFIGS: topic_settings(lambda _: {"max.message.bytes": "7"}),
    }

    async with ScriptedBroker({key: append_surplus_bytes(answer) for key, answer in answers.items()}) as broker:
        found = await survey(Upstream(bootstrap=(broker.address,)))

    assert set(found.brokers) == {1}
    assert found.topics["orders"].max_message_bytes == 7
    logged = [line for line in capsys.readouterr().out.splitlines() if "after a broker's response" in line]
    assert len(logged) == len(answers)
    assert sum("MetadataResponse" in line for line in logged) == 1
    assert all(f"broker={broker.address}" in line for line in logged)

    async with ScriptedBroker({key: append_surplus_bytes(answer) for key, answer in answers.items()}) as another:
        await ask_any_broker(Upstream(bootstrap=(another.address,)), None, partial(ask_for_settings, 1))
    logged = [line for line in capsys.readouterr().out.splitlines() if f"broker={another.address}" in line]
    assert len(logged) == 2, "ApiVersions and DescribeConfigs, of the other broker"


async def test_a_broken_response_is_reported_with_broker_api_and_version() -> None:
    def cut_response(version: int, body: bytes) -> bytes:
        return metadata_of_one_topic(version, body)[:-3]

    async with ScriptedBroker({ApiKey.METADATA: cut_response}) as broker:
        with pytest.raises(SurveyFailed, match=rf"{broker.address}: .*MetadataResponse v\d+: "):
            await survey(Upstream(bootstrap=(broker.address,)))


def test_surplus_bytes_are_an_error_in_messages_of_clients() -> None:
    whole = metadata_of_one_topic(12, b"")

    assert METADATA_RESPONSE.parse_start(whole + SURPLUS, 12)[1] == len(whole)
    with pytest.raises(MalformedMessage, match="1 bytes after its end"):
        METADATA_RESPONSE.parse(whole + SURPLUS, 12)
