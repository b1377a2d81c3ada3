"""For requests that brokers parse only in part or not at all, the proxy behaves like the broker."""

import struct
from collections.abc import Iterator

import pytest

from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_sasl import SASL_SETTINGS
from tests.integration.topics import DEFAULTS
from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_OLD
from tests.wire.raw_client import API_VERSIONS, CLOSED, RawClient

_HANDSHAKE, _AUTHENTICATE = 17, 36
_LOGIN = b"\0alice\0secret-of-alice"
_UNKNOWN_TAGS = b"\xb0\x09" + b"".join(
    struct.pack("BBB", 0x80 | number & 0x7F, number >> 7, 0) for number in range(1200)
)


def _request(key: int, version: int, body: bytes, tags: bytes = b"") -> bytes:
    return struct.pack(">hhih", key, version, 7, 3) + b"raw" + tags + body


def _short(text: bytes) -> bytes:
    return struct.pack(">h", len(text)) + text


def _compact(text: bytes) -> bytes:
    return bytes([len(text) + 1]) + text


def _versions(name: bytes, end: bytes = b"\0", version: int = 3) -> bytes:
    return _request(API_VERSIONS, version, name + _compact(b"1") + end, b"\0")


_PLAIN = _request(_HANDSHAKE, 1, _short(b"PLAIN"))
FRAMES: dict[str, tuple[bytes, ...]] = {
    "ApiVersions v3": (_versions(_compact(b"raw")),),
    "ApiVersions v3 with bytes after it": (_versions(_compact(b"raw"), b"\0more"),),
    "ApiVersions v4 with bytes after it": (_versions(_compact(b"raw"), b"\0more", version=4),),
    "ApiVersions v0 with bytes after it": (_request(API_VERSIONS, 0, b"more"),),
    "ApiVersions with 1,200 unknown tags": (_versions(_compact(b"raw"), _UNKNOWN_TAGS),),
    "ApiVersions, a software name that is not UTF-8": (_versions(_compact(b"\xff\xfe")),),
    "ApiVersions, a software name with a space": (_versions(_compact(b"a b!")),),
    "ApiVersions, an empty software name": (_versions(_compact(b"")),),
    "ApiVersions, no software name": (_versions(b"\0"),),
    "ApiVersions, cut": (_versions(_compact(b"raw"), b""),),
    "ApiVersions, tags cut": (_versions(_compact(b"raw"), b"\x01\x00\x7f"),),
    "SaslHandshake with bytes after it": (_PLAIN + b"more",),
    "SaslHandshake, a mechanism that is not UTF-8": (_request(_HANDSHAKE, 1, _short(b"\xff\xfe")),),
    "SaslHandshake, an empty mechanism": (_request(_HANDSHAKE, 1, _short(b"")),),
    "SaslHandshake, no mechanism": (_request(_HANDSHAKE, 1, b"\xff\xff"),),
    "SaslHandshake, cut": (_request(_HANDSHAKE, 1, b"\0\x09PL"),),
    "SaslAuthenticate v1 with bytes after it": (
        _PLAIN,
        _request(_AUTHENTICATE, 1, struct.pack(">i", len(_LOGIN)) + _LOGIN + b"more"),
    ),
    "SaslAuthenticate v2 with bytes after it": (
        _PLAIN,
        _request(_AUTHENTICATE, 2, _compact(_LOGIN) + b"\0more", b"\0"),
    ),
    "SaslAuthenticate, no token": (_PLAIN, _request(_AUTHENTICATE, 1, b"\xff\xff\xff\xff")),
    "SaslAuthenticate, cut": (_PLAIN, _request(_AUTHENTICATE, 1, struct.pack(">i", 99) + b"abc")),
    "SaslAuthenticate alone": (_request(_AUTHENTICATE, 1, struct.pack(">i", 3) + b"abc"),),
}


@pytest.fixture(scope="module", params=[KAFKA_NEW, pytest.param(KAFKA_OLD, marks=pytest.mark.long)])
def broker_and_proxy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """Yield the addresses of a broker that requires logins and of a proxy in front of it."""
    broker = Kafka(request.param, tmp_path_factory.mktemp("broker"), settings=SASL_SETTINGS)
    proxy: ProxyProcess | None = None
    try:
        address = broker.start().bootstrap
        upstream = {"bootstrap": [address], "brokers": {1: address}}
        settings = {"upstream": upstream, "defaults": DEFAULTS}
        proxy = ProxyProcess(tmp_path_factory.mktemp("proxy"), address, settings).start()
        yield address, proxy.bootstrap
    finally:
        if proxy is not None:
            proxy.stop()
        broker.stop()


def _seen(address: str, frames: tuple[bytes, ...]) -> list[bytes | str]:
    """Return the responses to the frames, without the list of APIs, and whether the connection stays open."""
    seen: list[bytes | str] = []
    with RawClient(address) as client:
        for frame in (*frames, _versions(_compact(b"raw"))):
            client.send_frame(frame)
            response = client.receive()
            is_versions = struct.unpack_from(">h", frame)[0] == API_VERSIONS
            seen.append(response[:6] if is_versions and isinstance(response, bytes) else response)
            if response == CLOSED:
                break
    return seen


@pytest.mark.parametrize("name", FRAMES)
def test_the_proxy_responds_to_partial_requests_as_the_broker_does(
    broker_and_proxy: tuple[str, str], name: str
) -> None:
    broker, proxy = broker_and_proxy

    assert _seen(proxy, FRAMES[name]) == _seen(broker, FRAMES[name])
