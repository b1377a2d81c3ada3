"""Who a client is, from its SASL tokens (RFC 4616, 5802, 7628)."""

import base64

import pytest

from proxy.identity import principal_in

CLAIMS = base64.urlsafe_b64encode(b'{"sub": "svc"}').rstrip(b"=")


@pytest.mark.parametrize(
    ("mechanism", "token", "principal"),
    [
        ("PLAIN", b"\0alice\0secret", "User:alice"),
        ("PLAIN", b"admin\0alice\0secret", "User:alice"),
        ("PLAIN", b"garbage", None),
        ("SCRAM-SHA-256", b"n,,n=bob,r=nonce", "User:bob"),
        ("SCRAM-SHA-512", b"n,,n=a=2Cb=3Dc,r=nonce", "User:a,b=c"),
        ("SCRAM-SHA-256", b"c=biws,r=nonce,p=proof", None),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer head." + CLAIMS + b".sign\x01\x01", "User:svc"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer opaque\x01\x01", None),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer a.!!!.c\x01\x01", None),
        ("GSSAPI", b"\x60\x82", None),
        (None, b"\0alice\0secret", None),
    ],
)
def test_principals(mechanism: str | None, token: bytes, principal: str | None) -> None:
    assert principal_in(mechanism, token) == principal
