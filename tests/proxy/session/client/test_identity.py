"""A principal is what the broker has said yes to. Answers are those that Kafka 4.3.1 gives."""

import pytest

from sluicegate.protocol.messages.handshake import (
    SASL_AUTHENTICATE_REQUEST,
    SASL_AUTHENTICATE_RESPONSE,
    SASL_HANDSHAKE_REQUEST,
)
from sluicegate.proxy.session.client.identity import ClientIdentity, Login, LoginFailure, SaslStage, SaslWatch

PLAIN_ALICE, PLAIN_BOB = b"\0alice\0guessed", b"\0bob\0pw"
SCRAM_FIRST, SCRAM_FINAL = b"n,,n=alice,r=nonce", b"c=biws,r=nonceserver,p=proof"
SERVER_FIRST, SERVER_FINAL = b"r=nonceserver,s=c2FsdA==,i=4096", b"v=c2lnbmF0dXJl"
BEFORE = b"a header"


class Exchange:
    """A client and a broker, and who the proxy takes the client for."""

    def __init__(
        self, mechanism: str, version: int = 1, claim: str | None = "sub", principal: str | None = None
    ) -> None:
        self.identity = ClientIdentity("peer", principal=principal)
        self.watch = SaslWatch(self.identity, claim)
        self.handshake(mechanism, version)

    def handshake(self, mechanism: str, version: int = 1) -> None:
        body = SASL_HANDSHAKE_REQUEST.build({"mechanism": mechanism}, version)
        self.watch.handshake_asked(version, bytearray(BEFORE + body), len(BEFORE))

    def ask(self, token: bytes, version: int = 2) -> Login:
        body = SASL_AUTHENTICATE_REQUEST.build({"auth_bytes": token}, version)
        return self.watch.authenticate_asked(version, bytearray(BEFORE + body), len(BEFORE))

    def answer(self, login: Login, token: bytes, error: int = 0, version: int = 2) -> LoginFailure | None:
        value = {"error_code": error, "error_message": "no \x1b" if error else None, "auth_bytes": token}
        body = SASL_AUTHENTICATE_RESPONSE.build(value, version)
        return self.watch.authenticate_answered(login, version, bytearray(BEFORE + body), len(BEFORE))

    @property
    def seen(self) -> tuple[str | None, bool]:
        return self.identity.principal, self.watch.logged_in


@pytest.mark.parametrize("version", SASL_AUTHENTICATE_REQUEST.versions)
def test_plain_is_complete_with_the_first_answer(version: int) -> None:
    exchange = Exchange("PLAIN")
    login = exchange.ask(PLAIN_ALICE, version)
    assert exchange.seen == (None, False)

    exchange.answer(login, b"", version=version)

    assert exchange.seen == ("User:alice", True)
    assert exchange.watch.has_begun


def test_scram_is_complete_with_the_servers_signature_only() -> None:
    exchange = Exchange("SCRAM-SHA-256")
    exchange.answer(exchange.ask(SCRAM_FIRST), SERVER_FIRST)
    assert exchange.seen == (None, False)

    exchange.answer(exchange.ask(SCRAM_FINAL), SERVER_FINAL)

    assert exchange.seen == ("User:alice", True)


def test_oauthbearer_says_no_in_an_answer_without_an_error_first() -> None:
    token = b"n,,\x01auth=Bearer a.eyJzdWIiOiAic3ZjIn0.c\x01\x01"
    exchange = Exchange("OAUTHBEARER")
    exchange.answer(exchange.ask(token), b'{"status":"invalid_token"}')
    assert exchange.seen == (None, False)

    exchange.handshake("OAUTHBEARER")
    exchange.answer(exchange.ask(token), b"")
    assert exchange.seen == ("User:svc", True)


BEARER_MIRROR = b"n,,\x01auth=Bearer a.eyJzdWIiOiJtaXJyb3IifQ.c\x01\x01"
BEARER_ETL = b"n,,\x01auth=Bearer a.eyJzdWIiOiJldGwifQ.c\x01\x01"
CHALLENGE = b'{"status":"invalid_token"}'


def test_after_a_rejected_token_the_next_one_names_the_client_without_another_handshake() -> None:
    exchange = Exchange("OAUTHBEARER")
    exchange.answer(exchange.ask(BEARER_MIRROR), CHALLENGE)

    exchange.answer(exchange.ask(BEARER_ETL), b"")

    assert exchange.seen == ("User:etl", True)


def test_each_answer_is_about_its_own_token_though_both_were_sent_before() -> None:
    exchange = Exchange("OAUTHBEARER")
    rejected, accepted = exchange.ask(BEARER_MIRROR), exchange.ask(BEARER_ETL)

    exchange.answer(rejected, CHALLENGE)
    exchange.answer(accepted, b"")
    exchange.answer(exchange.ask(BEARER_MIRROR), CHALLENGE)

    assert exchange.seen == ("User:etl", True)


@pytest.mark.parametrize(
    ("mechanism", "rejected", "tokens", "principal"),
    [
        ("PLAIN", PLAIN_ALICE, [(PLAIN_BOB, b"")], "User:bob"),
        ("SCRAM-SHA-256", b"n,,n=mirror,r=x", [(SCRAM_FIRST, SERVER_FIRST), (SCRAM_FINAL, SERVER_FINAL)], "User:alice"),
    ],
)
def test_a_name_that_was_rejected_with_an_error_is_not_the_next_ones(
    mechanism: str, rejected: bytes, tokens: list[tuple[bytes, bytes]], principal: str
) -> None:
    exchange = Exchange(mechanism)
    exchange.answer(exchange.ask(rejected), b"", error=58)

    for token, answer in tokens:
        exchange.answer(exchange.ask(token), answer)

    assert exchange.seen == (principal, True)


def test_a_login_that_names_nobody_does_not_leave_the_one_before() -> None:
    exchange = Exchange("PLAIN")
    exchange.answer(exchange.ask(PLAIN_BOB), b"")
    exchange.handshake("OAUTHBEARER")

    exchange.answer(exchange.ask(b"n,,\x01auth=Bearer opaque\x01\x01"), b"")

    assert exchange.seen == (None, True)


def test_a_login_that_names_nobody_leaves_the_certificates_principal() -> None:
    exchange = Exchange("GSSAPI", principal="CN=etl")

    exchange.answer(exchange.ask(b"\x60\x82"), b"token")

    assert exchange.seen == ("CN=etl", True)


def test_without_a_claim_a_bearers_principal_is_shown_and_relied_upon_by_nothing() -> None:
    exchange = Exchange("OAUTHBEARER", claim=None)
    exchange.answer(exchange.ask(BEARER_MIRROR), b"")

    client = exchange.identity.as_rules_see_it()

    assert exchange.seen == ("User:mirror (unverified)", True)
    assert (client.principal, client.is_unverified) == (None, True)


def test_of_other_mechanisms_nobody_is_named() -> None:
    exchange = Exchange("GSSAPI")
    exchange.answer(exchange.ask(b"\x60\x82"), b"token")

    assert exchange.seen == (None, True)


def test_a_rejection_names_whom_it_rejected_and_leaves_the_client_nobody() -> None:
    exchange = Exchange("PLAIN")

    failure = exchange.answer(exchange.ask(PLAIN_ALICE), b"", error=58)

    assert failure == LoginFailure("PLAIN", "User:alice", r"no \x1b")
    assert exchange.seen == (None, False)


def test_a_name_sent_behind_a_good_login_before_its_answer_is_not_confirmed_by_it() -> None:
    exchange = Exchange("PLAIN")
    good = exchange.ask(PLAIN_BOB)
    exchange.ask(PLAIN_ALICE)
    exchange.handshake("PLAIN")
    exchange.ask(PLAIN_ALICE)

    exchange.answer(good, b"")

    assert exchange.seen == ("User:bob", True)


def test_a_client_that_logs_in_again_stays_who_it_was_until_the_next_yes() -> None:
    exchange = Exchange("PLAIN")
    exchange.answer(exchange.ask(PLAIN_BOB), b"")
    exchange.handshake("SCRAM-SHA-512")
    exchange.answer(exchange.ask(SCRAM_FIRST), SERVER_FIRST)
    assert exchange.seen == ("User:bob", True)

    exchange.answer(exchange.ask(SCRAM_FINAL), SERVER_FINAL)

    assert exchange.seen == ("User:alice", True)


def test_raw_tokens_name_nobody_until_they_are_answered() -> None:
    exchange = Exchange("PLAIN", version=0)
    assert exchange.watch.stage is SaslStage.RAW_TOKENS
    login = exchange.watch.token_sent(PLAIN_ALICE)
    exchange.watch.requests_begin()
    assert exchange.seen == (None, False)
    assert exchange.watch.stage is SaslStage.REQUESTS

    exchange.watch.token_answered(login, b"")

    assert exchange.seen == ("User:alice", True)


def test_raw_scram() -> None:
    exchange = Exchange("SCRAM-SHA-256", version=0)
    exchange.watch.token_answered(exchange.watch.token_sent(SCRAM_FIRST), SERVER_FIRST)
    assert exchange.seen == (None, False)

    exchange.watch.token_answered(exchange.watch.token_sent(SCRAM_FINAL), SERVER_FINAL)

    assert exchange.seen == ("User:alice", True)


def test_requests_without_a_login_are_nobodys() -> None:
    watch = SaslWatch(ClientIdentity("peer"))

    assert not watch.has_begun
    assert not watch.logged_in
