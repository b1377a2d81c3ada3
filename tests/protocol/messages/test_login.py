"""The client's login messages equal the examples in the RFCs."""

import base64
import hashlib
import hmac
from functools import partial

import pytest
import scramp

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.messages.handshake import (
    SASL_AUTHENTICATE_REQUEST,
    SASL_AUTHENTICATE_RESPONSE,
    SASL_HANDSHAKE_REQUEST,
    SASL_HANDSHAKE_RESPONSE,
)
from sluicegate.protocol.messages.login import (
    LoginExchange,
    LoginNotOffered,
    LoginRequest,
    PasswordLogin,
    SaslAuthenticationFailed,
    TokenLogin,
    TokenNotAccepted,
)


def handshake_response(*mechanisms: str, code: int = 0) -> bytes:
    return SASL_HANDSHAKE_RESPONSE.build({"error_code": code, "mechanisms": list(mechanisms)}, 1)


def authenticate_response(content: bytes = b"", code: int = 0, message: str | None = None) -> bytes:
    return SASL_AUTHENTICATE_RESPONSE.build(
        {"error_code": code, "error_message": message, "auth_bytes": content}, 0
    )  # fmt: skip


def auth_bytes_of(request: LoginRequest | None) -> bytes:
    assert request is not None
    assert (request.key, request.version) == (ApiKey.SASL_AUTHENTICATE, 0)
    return bytes(SASL_AUTHENTICATE_REQUEST.parse(request.body, 0)["auth_bytes"])


def begin_login(login: PasswordLogin | TokenLogin) -> tuple[LoginExchange, bytes]:
    """Return an exchange after the handshake, and its first message."""
    exchange = LoginExchange(login)
    handshake = exchange.first()
    assert (handshake.key, handshake.version) == (ApiKey.SASL_HANDSHAKE, 1)
    assert SASL_HANDSHAKE_REQUEST.parse(handshake.body, 1)["mechanism"] == login.mechanism
    return exchange, auth_bytes_of(exchange.after(handshake_response(login.mechanism)))


def test_sasl_plain_sends_name_and_password_in_the_first_message() -> None:
    exchange, message = begin_login(PasswordLogin("PLAIN", "tim", "tanstaaftanstaaf"))  # RFC 4616, 4

    assert message == b"\0tim\0tanstaaftanstaaf"
    assert exchange.after(authenticate_response()) is None


def test_scram_messages_equal_the_rfc_7677_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scramp, "ScramClient", partial(scramp.ScramClient, c_nonce="rOprNGfwEbeRWgbNEkqO"))
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    exchange, message = begin_login(PasswordLogin("SCRAM-SHA-256", "user", "pencil"))

    assert message == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = auth_bytes_of(
        exchange.after(authenticate_response(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()))
    )
    assert final == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    assert exchange.after(authenticate_response(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")) is None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_rejects_server_with_invalid_signature(mechanism: str) -> None:
    exchange, message = begin_login(PasswordLogin(mechanism, "user", "pencil"))
    nonce = message.decode().rpartition("r=")[2] + "more"
    salt = base64.b64encode(bytes(16)).decode()
    exchange.after(authenticate_response(f"r={nonce},s={salt},i=4096".encode()))
    forged = base64.b64encode(hmac.new(b"other", b"m", hashlib.sha512).digest()[:32]).decode()

    with pytest.raises(SaslAuthenticationFailed, match=f"^{mechanism}: "):
        exchange.after(authenticate_response(f"v={forged}".encode()))


def test_scram_rejects_excessive_iteration_count() -> None:
    exchange, message = begin_login(PasswordLogin("SCRAM-SHA-256", "user", "pencil"))
    nonce = message.decode().rpartition("r=")[2] + "more"

    with pytest.raises(SaslAuthenticationFailed, match="requires 5000000 hashes of the password, more than 1000000"):
        exchange.after(authenticate_response(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=5000000".encode()))


def test_oauthbearer_token_is_sent_with_extensions() -> None:
    exchange, message = begin_login(TokenLogin("vF9dft4qmT", (("host", "a"), ("port", "1"))))  # as RFC 7628, 4.1

    assert message == b"n,,\x01auth=Bearer vF9dft4qmT\x01host=a\x01port=1\x01\x01"
    assert exchange.after(authenticate_response()) is None


@pytest.mark.parametrize(
    "end",
    [authenticate_response(code=58, message="Authentication failed"), authenticate_response()],
    ids=["Kafka", "a broker that ends quietly"],
)
def test_oauthbearer_rejection_reports_the_brokers_reason(end: bytes) -> None:
    """RFC 7628, 3.2.3: the client sends a lone separator after the reason."""
    exchange, _ = begin_login(TokenLogin("planted"))

    assert auth_bytes_of(exchange.after(authenticate_response(b'{"status":"invalid_token"}\n\x01'))) == b"\x01"
    with pytest.raises(TokenNotAccepted) as raised:
        exchange.after(end)

    assert str(raised.value) == 'the broker does not accept the token: {"status":"invalid_token"}??'


def test_a_token_rejected_with_an_error_code_is_not_accepted() -> None:
    exchange, _ = begin_login(TokenLogin("planted"))

    with pytest.raises(TokenNotAccepted, match=r"^no such key$"):
        exchange.after(authenticate_response(code=58, message="no such key"))


def test_an_unsupported_mechanism_is_reported_with_those_that_the_broker_offers() -> None:
    exchange = LoginExchange(PasswordLogin("PLAIN", "u", "p"))
    exchange.first()

    with pytest.raises(SaslAuthenticationFailed, match=r"^the broker offers GSSAPI, OAUTHBEARER, not PLAIN$"):
        exchange.after(handshake_response("GSSAPI", "OAUTHBEARER", code=33))


def test_a_broker_without_sasl_is_reported_as_offering_no_login() -> None:
    exchange = LoginExchange(PasswordLogin("PLAIN", "u", "p"))
    exchange.first()

    with pytest.raises(LoginNotOffered):
        exchange.after(handshake_response(code=34))


@pytest.mark.parametrize(
    ("message", "words"), [("x" * 5000, "x" * 300), ("a\nb\x1b[31m", "a?b?[31m"), (None, "no reason")]
)
def test_login_error_contains_shortened_printable_broker_message(message: str | None, words: str) -> None:
    exchange, _ = begin_login(PasswordLogin("PLAIN", "u", "planted"))

    with pytest.raises(SaslAuthenticationFailed) as raised:
        exchange.after(authenticate_response(code=58, message=message))

    assert words in str(raised.value)
    assert len(str(raised.value)) <= 300


@pytest.mark.parametrize("response", [b"", b"\0", b"\0\0\xff"])
def test_rejects_truncated_sasl_response(response: bytes) -> None:
    exchange, _ = begin_login(PasswordLogin("PLAIN", "u", "p"))

    with pytest.raises(MalformedMessage, match="SaslAuthenticate"):
        exchange.after(response)


def test_repr_of_login_does_not_reveal_secrets() -> None:
    held = [PasswordLogin("PLAIN", "u", "planted"), TokenLogin("planted")]

    assert "planted" not in repr(held)
    assert "planted" not in repr(LoginRequest(ApiKey.SASL_AUTHENTICATE, 0, b"planted"))
