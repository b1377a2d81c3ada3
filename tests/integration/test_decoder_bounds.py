"""Kafka 4.4's decoders bound arrays and tagged fields, and the same bounds apply to clients behind the proxy.

The proxy itself parses the tags of a header and of a Produce request, and forwards the other requests without parsing
them.
"""

import struct
from collections.abc import Iterator

import pytest

from sluicegate.protocol.integers import unsigned_varint
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.topics import DEFAULTS
from tests.oracle.kafka_java import KAFKA_NEWEST
from tests.wire.raw_client import API_VERSIONS, CLOSED, PRODUCE, RawClient, produce_body

pytestmark = pytest.mark.long

_LIST_GROUPS, _LIST_GROUPS_VERSION = 16, 4
_MOST_TAGS, _MOST_ELEMENTS = 10_000, 1_000_000
_CORRELATION_ID = 7
_NO_TAGS = b"\0"


def _tags(count: int) -> bytes:
    return unsigned_varint(count) + b"".join(unsigned_varint(tag) + b"\0" for tag in range(50, 50 + count))


def _request(key: int, version: int, body: bytes, tags: bytes = _NO_TAGS) -> bytes:
    return struct.pack(">hhih", key, version, _CORRELATION_ID, 3) + b"raw" + tags + body


def _versions(header_tags: bytes = _NO_TAGS, tags: bytes = _NO_TAGS) -> bytes:
    return _request(API_VERSIONS, 3, b"\x04raw\x021" + tags, header_tags)


def _produce(tags: bytes) -> bytes:
    """Return a Produce request for no topic."""
    body = produce_body(12, [])
    assert body.endswith(_NO_TAGS)
    return _request(PRODUCE, 12, body.removesuffix(_NO_TAGS) + tags)


def _list_groups(states: int) -> bytes:
    """Return a request for groups in many states, each an empty name."""
    return _request(_LIST_GROUPS, _LIST_GROUPS_VERSION, unsigned_varint(states + 1) + b"\x01" * states + _NO_TAGS)


FRAMES = {
    "tags of a header": lambda more: _versions(header_tags=_tags(_MOST_TAGS + more)),
    "tags of ApiVersions": lambda more: _versions(tags=_tags(_MOST_TAGS + more)),
    "tags of Produce": lambda more: _produce(_tags(_MOST_TAGS + more)),
    "elements of ListGroups": lambda more: _list_groups(_MOST_ELEMENTS + more),
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    yield from run_kafka(Kafka(KAFKA_NEWEST, tmp_path_factory.mktemp("newest")))


@pytest.fixture(scope="module")
def proxy(broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), broker.bootstrap, {"defaults": DEFAULTS})
    try:
        yield process.start()
    finally:
        process.stop()


def _has_response(address: str, frame: bytes) -> bool:
    """Return whether a frame gets a response; if not, the connection must end."""
    with RawClient(address, timeout=60) as client:
        client.send_frame(frame)
        response = client.receive(60)
    assert isinstance(response, bytes) or response == CLOSED, response
    return isinstance(response, bytes)


@pytest.mark.parametrize("name", FRAMES)
def test_a_request_one_over_a_decoder_bound_closes_the_connection_as_at_a_broker(
    name: str, broker: Kafka, proxy: ProxyProcess
) -> None:
    most, flood = FRAMES[name](0), FRAMES[name](1)

    direct = [_has_response(broker.bootstrap, frame) for frame in (most, flood)]
    through = [_has_response(f"127.0.0.1:{proxy.broker_port(1)}", frame) for frame in (most, flood)]

    assert direct == [True, False]
    assert through == direct
