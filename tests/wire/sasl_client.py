"""Provides a client that logs in with PLAIN, SCRAM (also delegation tokens) or OAUTHBEARER, message by message."""

import base64
import hashlib
import hmac
import struct
from typing import NamedTuple

from sluicegate.protocol.messages.handshake import (
    SASL_AUTHENTICATE_REQUEST,
    SASL_AUTHENTICATE_RESPONSE,
    SASL_HANDSHAKE_REQUEST,
    SASL_HANDSHAKE_RESPONSE,
)
from sluicegate.protocol.messages.schema import MessageSchema, Value
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import PRODUCE, RawClient, produce_body, topic_data

_HANDSHAKE, _AUTHENTICATE, _CREATE_TOKEN = 17, 36, 38
_NONCE = "rOprNGfwEbeRWgbNEkqO"
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
TOKEN_AUTH = ",tokenauth=true"
"""The extension of a SCRAM login with a delegation token (KIP-48)."""


class DelegationToken(NamedTuple):
    """A token: its id is the user name of a SCRAM login, its HMAC in base64 the password."""

    token_id: str
    password: str


class SaslClient(RawClient):
    """One connection. A method that logs in returns the broker's error message, and None if it accepts the login."""

    def plain(self, user: str, password: str) -> str | None:
        """Log in with PLAIN (RFC 4616)."""
        self._begin("PLAIN")
        return self._error(self._send(f"\0{user}\0{password}".encode()))

    def bearer(self, token: bytes) -> str | None:
        """Log in with a client's first message of OAUTHBEARER (RFC 7628)."""
        self._begin("OAUTHBEARER")
        response = self._send(token)
        return self._error(response) or (response["auth_bytes"].decode() or None if response else None)

    def scram(self, mechanism: str, user: str, password: str, extension: str = "", nonce: str = _NONCE) -> str | None:
        """Log in with SCRAM (RFC 5802)."""
        self._begin(mechanism)
        bare = f"n={user},r={nonce}{extension}"
        response = self._send(f"n,,{bare}".encode())
        if response is None or response["error_code"]:
            return self._error(response)
        server = response["auth_bytes"].decode()
        fields = dict(each.split("=", 1) for each in server.split(","))
        name = _HASHES[mechanism]
        salted = hashlib.pbkdf2_hmac(name, password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
        key = hmac.digest(salted, b"Client Key", name)
        without_proof = f"c=biws,r={fields['r']}"
        signature = hmac.digest(hashlib.new(name, key).digest(), f"{bare},{server},{without_proof}".encode(), name)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
        return self._error(self._send(f"{without_proof},p={proof}".encode()))

    def new_delegation_token(self) -> DelegationToken:
        """Create a token for the user that has logged in (CreateDelegationToken v1)."""
        self.send(_CREATE_TOKEN, 1, struct.pack(">iq", 0, -1))
        frame = self.receive()
        assert isinstance(frame, bytes)
        error, at = struct.unpack_from(">h", frame, 4)[0], 6
        assert error == 0, error
        _, at = _text(frame, at)
        _, at = _text(frame, at)
        token_id, at = _text(frame, at + 24)
        size = struct.unpack_from(">i", frame, at)[0]
        return DelegationToken(token_id, base64.b64encode(frame[at + 4 : at + 4 + size]).decode())

    def send_plain_unanswered(self, user: str, password: str) -> None:
        """Send a login with PLAIN without waiting for the responses."""
        self.send(_HANDSHAKE, 1, SASL_HANDSHAKE_REQUEST.build({"mechanism": "PLAIN"}, 1))
        token = f"\0{user}\0{password}".encode()
        self.send(_AUTHENTICATE, 1, SASL_AUTHENTICATE_REQUEST.build({"auth_bytes": token}, 1))

    def send_record(self, topic: str, timestamp: int) -> None:
        """Send a record with this timestamp without waiting for the response."""
        self.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, batch([Rec(timestamp)])))]))

    def code_of(self, topic: str, timestamp: int) -> int | None:
        """Send a record with this timestamp and return its error code; None if the connection is closed."""
        response = self.produce(9, [topic_data(topic, (0, batch([Rec(timestamp)])))])
        if isinstance(response, str):
            return None
        code: int = response["responses"][0]["partition_responses"][0]["error_code"]
        return code

    def _begin(self, mechanism: str) -> None:
        body = SASL_HANDSHAKE_REQUEST.build({"mechanism": mechanism}, 1)
        response = self._call(_HANDSHAKE, 1, SASL_HANDSHAKE_RESPONSE, body)
        if response is None:
            raise ConnectionError("the connection ended before the response to SaslHandshake")
        assert response["error_code"] == 0, response

    def _send(self, token: bytes) -> Value | None:
        return self._call(
            _AUTHENTICATE, 1, SASL_AUTHENTICATE_RESPONSE, SASL_AUTHENTICATE_REQUEST.build({"auth_bytes": token}, 1)
        )

    def _call(self, key: int, version: int, schema: MessageSchema, body: bytes) -> Value | None:
        response = self.call(key, version, schema, body)
        return None if isinstance(response, str) else response

    @staticmethod
    def _error(response: Value | None) -> str | None:
        if response is None:
            return "closed"
        return (response["error_message"] or "no reason") if response["error_code"] else None


def _text(frame: bytes, at: int) -> tuple[str, int]:
    size = struct.unpack_from(">h", frame, at)[0]
    return frame[at + 2 : at + 2 + size].decode(), at + 2 + size
