"""A real broker's errors for single partitions, in responses that pass unchanged, are counted with their client."""

import struct
import uuid
from collections.abc import Callable

import pytest

from sluicegate.protocol.messages.fetch import LIST_OFFSETS_REQUEST, LIST_OFFSETS_RESPONSE
from tests.broker.proxy_process import ProxyProcess
from tests.wire.raw_client import RawClient

LIST_OFFSETS, OFFSET_COMMIT = 2, 8
UNKNOWN_TOPIC_OR_PARTITION = 3


def fetch_error(client: RawClient, topic: str) -> int:
    return client.fetch_error(topic, 0)


def list_offsets(client: RawClient, topic: str) -> int:
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}]
    response = client.call(LIST_OFFSETS, 1, LIST_OFFSETS_RESPONSE, LIST_OFFSETS_REQUEST.build({"topics": topics}, 1))
    assert isinstance(response, dict)
    code: int = response["topics"][0]["partitions"][0]["error_code"]
    return code


def offset_commit(client: RawClient, topic: str) -> int:
    """Send an OffsetCommit v2 and return the error code, which is the last field of the response."""
    name = struct.pack(f">h{len(topic)}s", len(topic), topic.encode())
    partition = struct.pack(">iiqh", 1, 0, 7, -1)
    client.send(OFFSET_COMMIT, 2, b"\0\1g" + struct.pack(">ihqi", -1, 0, -1, 1) + name + partition)
    response = client.receive()
    assert isinstance(response, bytes)
    code: int = struct.unpack(">h", response[-2:])[0]
    return code


@pytest.mark.parametrize(
    ("api", "ask"), [("Fetch", fetch_error), ("ListOffsets", list_offsets), ("OffsetCommit", offset_commit)]
)
def test_an_unknown_partition_error_of_a_broker_is_counted_by_api_and_client(
    api: str, ask: Callable[[RawClient, str], int], proxy: ProxyProcess
) -> None:
    series = f'sluicegate_broker_errors_total{{api="{api}",client_id="raw",error="UNKNOWN_TOPIC_OR_PARTITION"}} '
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}") as client:
        client.api_versions()  # as every client does; the request contains the client id
        assert ask(client, f"no-such-{uuid.uuid4().hex}") == UNKNOWN_TOPIC_OR_PARTITION

    lines = proxy.get("/metrics")[1].splitlines()
    counted = [line for line in lines if line.startswith("sluicegate_broker_errors_total{")]
    assert f"{series}1.0" in counted, counted
