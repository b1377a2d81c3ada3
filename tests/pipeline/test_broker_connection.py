"""The pipeline's connection to a broker ignores bytes after a response's end, and reports broken responses."""

import asyncio

import pytest

from sluicegate.pipeline.kafka.connection import BrokerConnection, BrokerUnreachable
from sluicegate.pipeline.kafka.settings import ClientSettings
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import METADATA_REQUEST, METADATA_RESPONSE
from sluicegate.protocol.messages.schema import Value
from tests.proxy.scripted_broker import ScriptedBroker, metadata_of_brokers


def ask_for_metadata(host: str, port: int) -> Value:
    connection = BrokerConnection((host, port), ClientSettings(timeout_seconds=10))
    try:
        return connection.call(ApiKey.METADATA, METADATA_REQUEST, METADATA_RESPONSE, {"topics": []})
    finally:
        connection.close()


def metadata_response(version: int, body: bytes) -> bytes:
    whole = metadata_of_brokers((1, "kafka", 9092))(version, body)
    assert isinstance(whole, bytes)
    return whole


async def test_bytes_after_a_responses_end_are_ignored() -> None:
    async with ScriptedBroker(
        {ApiKey.METADATA: lambda version, body: metadata_response(version, body) + b"\0"}
    ) as broker:
        found = await asyncio.to_thread(ask_for_metadata, broker.address.host, broker.address.port)

    assert [node["node_id"] for node in found["brokers"]] == [1]


async def test_a_broken_response_is_reported_with_broker_api_and_version() -> None:
    async with ScriptedBroker({ApiKey.METADATA: lambda version, body: metadata_response(version, body)[:-3]}) as broker:
        with pytest.raises(BrokerUnreachable, match=rf"^{broker.address} responds.*MetadataResponse v\d+: "):
            await asyncio.to_thread(ask_for_metadata, broker.address.host, broker.address.port)
