"""Raw SASL tokens and Kafka requests, told apart by their first bytes."""

import struct

import pytest

from proxy.request_side import _may_be_request

TOKENS = {
    "PLAIN": b"\0alice\0secret",
    "PLAIN, one letter": b"\0A\0password",
    "PLAIN with authzid": b"admin\0alice\0secret",
    "SCRAM first": b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
    "SCRAM final": b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    "OAUTHBEARER": b"n,,\x01auth=Bearer token\x01\x01",
    "GSSAPI first": b"\x60\x82\x02\x6e\x06\x09\x2a\x86\x48\x86\xf7",
    "GSSAPI wrap": b"\x05\x04\x05\xff\x00\x0c\x00\x00\x00\x00",
    "empty": b"",
}


@pytest.mark.parametrize("name", TOKENS)
def test_tokens_are_no_requests(name: str) -> None:
    assert not _may_be_request(len(TOKENS[name]), TOKENS[name][:8])


@pytest.mark.parametrize(("key", "version"), [(0, 9), (3, 12), (18, 4), (0, 14), (200, 0)])
def test_requests_are_requests_known_or_not(key: int, version: int) -> None:
    assert _may_be_request(50, struct.pack(">hhi", key, version, 1))
