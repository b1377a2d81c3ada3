"""PROXY protocol version 2 headers, which are built by hand from HAProxy's specification, are parsed."""

import pytest

from sluicegate.config.listen import Listen
from sluicegate.config.loading import read_section
from sluicegate.proxy.network.proxy_protocol import (
    MAX_BYTES,
    BadProxyHeader,
    ProxyProtocol,
    client_address_in,
    may_be_header,
    remaining_bytes,
)
from sluicegate.proxy.network.proxy_protocol import proxy_protocol_of as configured

SIGNATURE = bytes.fromhex("0d0a0d0a000d0a515549540a")


def version_2_header(rest: str) -> bytes:
    return SIGNATURE + bytes.fromhex(rest)


@pytest.mark.parametrize(
    ("head", "behind", "client"),
    [
        ("2111000c", "c0000207 0a000001 dc04 2384", "192.0.2.7:56324"),
        ("21110014", "c0000207 0a000001 dc04 2384 0400050102030405", "192.0.2.7:56324"),  # followed by a TLV
        ("21210024", "20010db8" + "00" * 11 + "07" + "00" * 16 + "dc04 2384", "2001:db8::7:56324"),
        ("21210024", "00" * 10 + "ffff c0000207" + "00" * 16 + "dc04 2384", "192.0.2.7:56324"),
        ("20000000", "", None),
        ("2011000c", "c0000207 0a000001 dc04 2384", None),  # LOCAL: the addresses must be ignored
        ("21000000", "", None),
        ("21310000", "", None),
    ],
)
def test_proxy_header_contains_client_address(head: str, behind: str, client: str | None) -> None:
    after = bytes.fromhex(behind)

    assert remaining_bytes(version_2_header(head)) in (len(after), 0)
    assert client_address_in(version_2_header(head), after) == client


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"PROXY TCP4 1.2.3.4 ", "version 1"),
        (b"GET / HTTP/1.1\r\n\r\n", "no PROXY protocol header"),
        (version_2_header("1111000c"), "0x11"),
        (version_2_header("2211000c"), "0x22"),
        (version_2_header(f"2111{MAX_BYTES + 1:04x}"), "more than the 4096 allowed"),
    ],
)
def test_rejects_invalid_headers_with_the_reason(head: bytes, words: str) -> None:
    with pytest.raises(BadProxyHeader, match=words):
        remaining_bytes(head[:16])


def test_a_header_too_short_for_its_addresses_is_rejected() -> None:
    with pytest.raises(BadProxyHeader, match="4 bytes for addresses of 12"):
        client_address_in(version_2_header("21110004"), bytes(4))


def test_recognizes_the_beginning_of_a_header() -> None:
    assert may_be_header(b"\r\n")
    assert may_be_header(SIGNATURE + b"!")
    assert not may_be_header(b"\r\n\r\r")
    assert not may_be_header(b"\0\0\0\x10")


def test_accepts_headers_only_from_listed_networks() -> None:
    listen = read_section(
        Listen,
        {
            "bootstrap": "127.0.0.1:9",
            "proxy_protocol": "optional",
            "proxy_protocol_from": "10.0.0.0/8, 2001:db8::/32, 192.0.2.1",
        },
    )
    proxied = configured(listen)
    assert isinstance(proxied, ProxyProtocol)

    trusted = [peer for peer in PEERS if proxied.trusts(peer)]

    assert trusted == ["10.255.0.1", "::ffff:10.0.0.1", "2001:db8::1%eth0", "192.0.2.1"]


PEERS = ["10.255.0.1", "::ffff:10.0.0.1", "2001:db8::1%eth0", "192.0.2.1", "11.0.0.1", "192.0.2.2", "::1", "a name", ""]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"proxy_protocol": "required"}, "must be set together"),
        ({"proxy_protocol_from": ["10.0.0.0/8"]}, "must be set together"),
        ({"proxy_protocol": "required", "proxy_protocol_from": ["10.0.0.1/8"]}, "expected a network"),
        ({"proxy_protocol": "required", "proxy_protocol_from": ["lb.example.com"]}, "expected a network"),
    ],
)
def test_rejects_inconsistent_proxy_protocol_settings(keys: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_section(Listen, {"bootstrap": "127.0.0.1:9", **keys})
