"""The principal is the name in a login that the broker accepted. The responses are copied from Kafka 4.3.1."""

import pytest

from sluicegate.protocol.messages.handshake import (
    SASL_AUTHENTICATE_REQUEST,
    SASL_AUTHENTICATE_RESPONSE,
    SASL_HANDSHAKE_REQUEST,
)
from sluicegate.proxy.session.client.bearer_token import KafkaClaim
from sluicegate.proxy.session.client.claimed_principal import PrincipalSources, UnverifiedReason
from sluicegate.proxy.session.client.identity import ClientIdentity, LoginAttempt, LoginFailure, SaslStage, SaslTracker

PLAIN_ALICE, PLAIN_BOB = b"\0alice\0guessed", b"\0bob\0pw"
SCRAM_FIRST, SCRAM_FINAL = b"n,,n=alice,r=nonce", b"c=biws,r=nonceserver,p=proof"
SERVER_FIRST, SERVER_FINAL = b"r=nonceserver,s=c2FsdA==,i=4096", b"v=c2lnbmF0dXJl"
BEFORE = b"a header"
DECLARED = PrincipalSources(frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}), KafkaClaim("sub"))
UNDECLARED = PrincipalSources()


class SaslExchange:
    """A client and a broker, and the client's identity according to the proxy."""

    def __init__(
        self, mechanism: str, version: int = 1, sources: PrincipalSources = DECLARED, principal: str | None = None
    ) -> None:
        self.identity = ClientIdentity("peer", principal=principal)
        self.tracker = SaslTracker(self.identity, sources)
        self.handshake(mechanism, version)

    def handshake(self, mechanism: str, version: int = 1) -> None:
        body = SASL_HANDSHAKE_REQUEST.build({"mechanism": mechanism}, version)
        self.tracker.on_handshake(version, bytearray(BEFORE + body), len(BEFORE))

    def send(self, token: bytes, version: int = 2) -> LoginAttempt:
        body = SASL_AUTHENTICATE_REQUEST.build({"auth_bytes": token}, version)
        return self.tracker.on_authenticate(version, bytearray(BEFORE + body), len(BEFORE))

    def respond(self, login: LoginAttempt, token: bytes, error: int = 0, version: int = 2) -> LoginFailure | None:
        value = {"error_code": error, "error_message": "no \x1b" if error else None, "auth_bytes": token}
        body = SASL_AUTHENTICATE_RESPONSE.build(value, version)
        return self.tracker.on_authenticate_response(login, version, bytearray(BEFORE + body), len(BEFORE))

    @property
    def principal_and_login(self) -> tuple[str | None, bool]:
        return self.identity.principal, self.tracker.logged_in


@pytest.mark.parametrize("version", SASL_AUTHENTICATE_REQUEST.versions)
def test_plain_login_completes_with_the_first_response(version: int) -> None:
    exchange = SaslExchange("PLAIN")
    login = exchange.send(PLAIN_ALICE, version)
    assert exchange.principal_and_login == (None, False)

    exchange.respond(login, b"", version=version)

    assert exchange.principal_and_login == ("User:alice", True)
    assert exchange.tracker.has_begun


def test_scram_login_completes_only_with_the_server_signature() -> None:
    exchange = SaslExchange("SCRAM-SHA-256")
    exchange.respond(exchange.send(SCRAM_FIRST), SERVER_FIRST)
    assert exchange.principal_and_login == (None, False)

    exchange.respond(exchange.send(SCRAM_FINAL), SERVER_FINAL)

    assert exchange.principal_and_login == ("User:alice", True)


def test_an_oauthbearer_rejection_without_an_error_code_is_recognized() -> None:
    token = b"n,,\x01auth=Bearer a.eyJzdWIiOiAic3ZjIn0.c\x01\x01"
    exchange = SaslExchange("OAUTHBEARER")
    exchange.respond(exchange.send(token), b'{"status":"invalid_token"}')
    assert exchange.principal_and_login == (None, False)

    exchange.handshake("OAUTHBEARER")
    exchange.respond(exchange.send(token), b"")
    assert exchange.principal_and_login == ("User:svc", True)


BEARER_MIRROR = b"n,,\x01auth=Bearer a.eyJzdWIiOiJtaXJyb3IifQ.c\x01\x01"
BEARER_ETL = b"n,,\x01auth=Bearer a.eyJzdWIiOiJldGwifQ.c\x01\x01"
CHALLENGE = b'{"status":"invalid_token"}'


def test_token_after_a_rejected_one_sets_the_principal_without_a_new_handshake() -> None:
    exchange = SaslExchange("OAUTHBEARER")
    exchange.respond(exchange.send(BEARER_MIRROR), CHALLENGE)

    exchange.respond(exchange.send(BEARER_ETL), b"")

    assert exchange.principal_and_login == ("User:etl", True)


def test_pipelined_logins_are_matched_to_their_own_responses() -> None:
    exchange = SaslExchange("OAUTHBEARER")
    rejected, accepted = exchange.send(BEARER_MIRROR), exchange.send(BEARER_ETL)

    exchange.respond(rejected, CHALLENGE)
    exchange.respond(accepted, b"")
    exchange.respond(exchange.send(BEARER_MIRROR), CHALLENGE)

    assert exchange.principal_and_login == ("User:etl", True)


@pytest.mark.parametrize(
    ("mechanism", "rejected", "tokens", "principal"),
    [
        ("PLAIN", PLAIN_ALICE, [(PLAIN_BOB, b"")], "User:bob"),
        ("SCRAM-SHA-256", b"n,,n=mirror,r=x", [(SCRAM_FIRST, SERVER_FIRST), (SCRAM_FINAL, SERVER_FINAL)], "User:alice"),
    ],
)
def test_user_name_of_a_rejected_login_is_not_used_for_the_next_login(
    mechanism: str, rejected: bytes, tokens: list[tuple[bytes, bytes]], principal: str
) -> None:
    exchange = SaslExchange(mechanism)
    exchange.respond(exchange.send(rejected), b"", error=58)

    for token, answer in tokens:
        exchange.respond(exchange.send(token), answer)

    assert exchange.principal_and_login == (principal, True)


def test_login_without_a_user_name_replaces_the_previous_principal() -> None:
    exchange = SaslExchange("PLAIN")
    exchange.respond(exchange.send(PLAIN_BOB), b"")
    exchange.handshake("OAUTHBEARER")

    exchange.respond(exchange.send(b"n,,\x01auth=Bearer opaque\x01\x01"), b"")

    assert exchange.principal_and_login == ("unknown (unverified)", True)
    assert exchange.identity.doubt is UnverifiedReason.NO_NAME


@pytest.mark.parametrize(
    ("mechanism", "token"),
    [("GSSAPI", b"\x60\x82"), ("AWS_MSK_IAM", b"{}"), ("OAUTHBEARER", b"n,,\x01auth=Bearer opaque\x01\x01")],
)
def test_login_without_a_user_name_replaces_the_certificate_principal(mechanism: str, token: bytes) -> None:
    """A broker with SASL_SSL and client certificates authorizes the login's principal, not the certificate's."""
    exchange = SaslExchange(mechanism, principal="User:CN=etl")

    exchange.respond(exchange.send(token), b"")
    client = exchange.identity.for_rules()

    assert exchange.principal_and_login == ("unknown (unverified)", True)
    assert (client.principal, client.is_unverified) == (None, True)


@pytest.mark.parametrize(
    ("mechanism", "messages", "shown", "doubt"),
    [
        ("OAUTHBEARER", [(BEARER_MIRROR, b"")], "User:mirror (unverified)", UnverifiedReason.UNDECLARED_CLAIM),
        ("PLAIN", [(PLAIN_BOB, b"")], "User:bob (unverified)", UnverifiedReason.UNDECLARED_USER_NAME),
        (
            "SCRAM-SHA-512",
            [(SCRAM_FIRST, SERVER_FIRST), (SCRAM_FINAL, SERVER_FINAL)],
            "User:alice (unverified)",
            UnverifiedReason.UNDECLARED_USER_NAME,
        ),
    ],
)
def test_undeclared_principal_is_shown_as_unverified_and_ignored_by_policies(
    mechanism: str, messages: list[tuple[bytes, bytes]], shown: str, doubt: UnverifiedReason
) -> None:
    exchange = SaslExchange(mechanism, sources=UNDECLARED)
    for token, response in messages:
        exchange.respond(exchange.send(token), response)

    client = exchange.identity.for_rules()

    assert exchange.principal_and_login == (shown, True)
    assert exchange.identity.doubt is doubt
    assert (client.principal, client.is_unverified) == (None, True)


def test_a_verified_login_replaces_an_unverified_one() -> None:
    exchange = SaslExchange("GSSAPI")
    exchange.respond(exchange.send(b"\x60\x82"), b"token")
    exchange.handshake("PLAIN")

    exchange.respond(exchange.send(PLAIN_BOB), b"")

    assert exchange.identity.for_rules().principal == "User:bob"
    assert not exchange.identity.for_rules().is_unverified


def test_rejected_login_is_reported_with_user_name_and_sets_no_principal() -> None:
    exchange = SaslExchange("PLAIN")

    failure = exchange.respond(exchange.send(PLAIN_ALICE), b"", error=58)

    assert failure == LoginFailure("PLAIN", "User:alice", r"no \x1b")
    assert exchange.principal_and_login == (None, False)


def test_response_to_an_earlier_login_does_not_confirm_a_pipelined_login() -> None:
    exchange = SaslExchange("PLAIN")
    good = exchange.send(PLAIN_BOB)
    exchange.send(PLAIN_ALICE)
    exchange.handshake("PLAIN")
    exchange.send(PLAIN_ALICE)

    exchange.respond(good, b"")

    assert exchange.principal_and_login == ("User:bob", True)


def test_a_client_keeps_its_principal_until_a_reauthentication_is_accepted() -> None:
    exchange = SaslExchange("PLAIN")
    exchange.respond(exchange.send(PLAIN_BOB), b"")
    exchange.handshake("SCRAM-SHA-512")
    exchange.respond(exchange.send(SCRAM_FIRST), SERVER_FIRST)
    assert exchange.principal_and_login == ("User:bob", True)

    exchange.respond(exchange.send(SCRAM_FINAL), SERVER_FINAL)

    assert exchange.principal_and_login == ("User:alice", True)


def test_raw_sasl_token_sets_the_principal_only_after_its_response() -> None:
    exchange = SaslExchange("PLAIN", version=0)
    assert exchange.tracker.stage is SaslStage.RAW_TOKENS
    login = exchange.tracker.on_token(PLAIN_ALICE)
    exchange.tracker.on_first_request()
    assert exchange.principal_and_login == (None, False)
    assert exchange.tracker.stage is SaslStage.REQUESTS

    exchange.tracker.on_token_accepted(login, b"")

    assert exchange.principal_and_login == ("User:alice", True)


def test_raw_scram_login_sets_the_principal_after_the_last_response() -> None:
    exchange = SaslExchange("SCRAM-SHA-256", version=0)
    exchange.tracker.on_token_accepted(exchange.tracker.on_token(SCRAM_FIRST), SERVER_FIRST)
    assert exchange.principal_and_login == (None, False)

    exchange.tracker.on_token_accepted(exchange.tracker.on_token(SCRAM_FINAL), SERVER_FINAL)

    assert exchange.principal_and_login == ("User:alice", True)


def test_a_client_without_a_login_is_not_logged_in() -> None:
    watch = SaslTracker(ClientIdentity("peer"), DECLARED)

    assert not watch.has_begun
    assert not watch.logged_in
