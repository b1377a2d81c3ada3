"""The principal is the name in a login's first token (RFC 4616, 5802, 7628)."""

import base64

import pytest

from sluicegate.proxy.session.client.bearer_token import KafkaClaim
from sluicegate.proxy.session.client.claimed_principal import (
    UNNAMED,
    PrincipalSources,
    UnverifiedReason,
    principal_in,
    principal_of_certificate,
)
from sluicegate.proxy.session.client.client_text import MAX_CHARACTERS
from tests.wire.cost import cpu_seconds_of_call

CLAIMS = base64.urlsafe_b64encode(b'{"sub": "svc"}').rstrip(b"=")
OTHER = base64.urlsafe_b64encode(b'{"sub": "other"}').rstrip(b"=")
DEEP = base64.urlsafe_b64encode(b"[" * 40_000)
USER_NAMES = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
DECLARED = PrincipalSources(USER_NAMES, KafkaClaim("sub"))
LONG_NUMBER = base64.urlsafe_b64encode(b'{"sub": "svc", "n": ' + b"9" * 10_000 + b"}")


def bearer_message(token: bytes) -> bytes:
    return b"n,,\x01auth=Bearer " + token + b"\x01\x01"


@pytest.mark.parametrize(
    ("mechanism", "token", "principal"),
    [
        ("PLAIN", b"\0alice\0secret", "User:alice"),
        ("PLAIN", b"admin\0alice\0secret", "User:alice"),
        ("PLAIN", b"garbage", None),
        ("PLAIN", b"\0alice\0secret\0more", None),
        ("PLAIN", b"\0al\\x1bice\0secret", r"User:al\x1bice"),
        ("PLAIN", "\0Ärm İx 日本\0secret".encode(), "User:Ärm İx 日本"),
        ("SCRAM-SHA-256", b"n,,n=bob,r=nonce", "User:bob"),
        ("SCRAM-SHA-256", b"n,a=bob,n=bob,r=nonce", "User:bob"),
        ("SCRAM-SHA-256", b"n,,m=ext,n=bob,r=nonce", "User:bob"),
        ("SCRAM-SHA-512", b"n,,n=a=2Cb=3Dc,r=nonce", "User:a,b=c"),
        ("SCRAM-SHA-256", b"c=biws,r=nonce,p=proof", None),
        ("OAUTHBEARER", bearer_message(b"head." + CLAIMS + b".sign"), "User:svc"),
        # As in Kafka, the last of two extensions counts. The scheme may be in any case, and any number of spaces may
        # follow it.
        (
            "OAUTHBEARER",
            b"n,,\x01x=auth=Bearer a." + OTHER + b".\x01auth=Bearer a." + CLAIMS + b".\x01\x01",
            "User:svc",
        ),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer a." + OTHER + b".\x01auth=Bearer a." + CLAIMS + b".\x01\x01", "User:svc"),
        ("OAUTHBEARER", b"n,a=svc,\x01auth=bearer   a." + CLAIMS + b".\x01\x01", "User:svc"),
        ("OAUTHBEARER", b"n,,\x01xauth=Bearer a." + CLAIMS + b".\x01\x01", None),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer a." + CLAIMS + b".\x01x=" + b"y" * 140_000 + b"\x01\x01", None),
        ("OAUTHBEARER", bearer_message(b"opaque"), None),
        ("OAUTHBEARER", bearer_message(b"a.!!!.c"), None),
        ("OAUTHBEARER", bearer_message(b"a." + DEEP + b".c"), None),
        ("OAUTHBEARER", bearer_message(b"a." + LONG_NUMBER + b".c"), None),
        ("OAUTHBEARER", bearer_message(b"a." + CLAIMS), "User:svc"),
        ("GSSAPI", b"\x60\x82", None),
        (None, b"\0alice\0secret", None),
    ],
)
def test_principal_is_read_from_the_first_token_of_a_login(
    mechanism: str | None, token: bytes, principal: str | None
) -> None:
    claimed = principal_in(mechanism, token, DECLARED)

    assert claimed == (UNNAMED if principal is None else (principal, None))


@pytest.mark.parametrize(
    ("mechanism", "token", "declared", "principal", "doubt"),
    [
        ("PLAIN", b"\0alice\0secret", {"SCRAM-SHA-256"}, "User:alice", UnverifiedReason.UNDECLARED_USER_NAME),
        ("SCRAM-SHA-256", b"n,,n=bob,r=nonce", {"SCRAM-SHA-512"}, "User:bob", UnverifiedReason.UNDECLARED_USER_NAME),
        ("PLAIN", b"\0al\x1bice\0secret", USER_NAMES, r"User:al\x1bice", UnverifiedReason.ALTERED_NAME),
        ("PLAIN", b"\0al\xffice\0secret", USER_NAMES, "User:al\ufffdice", UnverifiedReason.ALTERED_NAME),
        (
            "SCRAM-SHA-256",
            b"n,,n=ab12,r=nonce,tokenauth=true",
            USER_NAMES,
            "User:ab12",
            UnverifiedReason.DELEGATION_TOKEN,
        ),
        (
            "SCRAM-SHA-512",
            b"n,,n=ab12,r=nonce,x=y,tokenauth=TRUE",
            USER_NAMES,
            "User:ab12",
            UnverifiedReason.DELEGATION_TOKEN,
        ),
        ("SCRAM-SHA-512", b"n,,n=ab12,r=nonce,tokenauth=true", (), "User:ab12", UnverifiedReason.DELEGATION_TOKEN),
    ],
)
def test_name_that_may_differ_from_the_principal_is_unverified(
    mechanism: str, token: bytes, declared: frozenset[str], principal: str, doubt: UnverifiedReason
) -> None:
    sources = PrincipalSources(frozenset(declared), KafkaClaim("sub"))

    assert principal_in(mechanism, token, sources) == (f"{principal} (unverified)", doubt)


def test_scram_message_too_long_to_read_gives_no_user_name() -> None:
    """Regression: the extension of a delegation token after 8 KiB was not seen, and the token's id was a user name."""
    token = b"n,,n=ab12,r=" + b"x" * 9000 + b",tokenauth=true"

    assert principal_in("SCRAM-SHA-256", token, DECLARED) == UNNAMED


@pytest.mark.parametrize(
    ("principal", "claimed"),
    [
        ("User:CN=etl,O=example", ("User:CN=etl,O=example", None)),
        ("User:CN=e\ntl", (r"User:CN=e\x0atl (unverified)", UnverifiedReason.ALTERED_NAME)),
    ],
)
def test_certificate_principal_is_verified_only_if_fully_printable(principal: str, claimed: object) -> None:
    assert principal_of_certificate(principal) == claimed


@pytest.mark.parametrize(
    ("claim", "claimed"),
    [
        (None, ("User:svc (unverified)", UnverifiedReason.UNDECLARED_CLAIM)),
        ("sub", ("User:svc", None)),
        ("preferred_username", ("User:etl", None)),
        ("azp", UNNAMED),
        ("scope", UNNAMED),  # Kafka accepts only strings
    ],
)
def test_token_principal_is_the_claim_that_brokers_use(claim: str | None, claimed: object) -> None:
    claims = base64.urlsafe_b64encode(b'{"sub": "svc", "preferred_username": "etl", "scope": ["a"]}')

    names = None if claim is None else KafkaClaim(claim)
    assert (
        principal_in("OAUTHBEARER", bearer_message(b"a." + claims + b".c"), PrincipalSources(claims=names)) == claimed
    )


def test_truncated_name_still_ends_with_unverified_mark() -> None:
    claims = base64.urlsafe_b64encode(b'{"sub": "' + b"a" * 5000 + b'"}')

    claimed = principal_in("OAUTHBEARER", bearer_message(b"a." + claims + b".c"), PrincipalSources())

    assert claimed.principal.endswith("a… (5000 characters) (unverified)")
    assert len(claimed.principal) == MAX_CHARACTERS


@pytest.mark.parametrize(("mechanism", "token"), [("PLAIN", b"\0%s\0pw"), ("SCRAM-SHA-256", b"n,,n=%s,r=nonce")])
def test_long_name_is_truncated_and_unverified(mechanism: str, token: bytes) -> None:
    """Another name with the same beginning would look the same, so it is not verified."""
    claimed = principal_in(mechanism, token % (b"a" * 5000), DECLARED)

    assert claimed.doubt is UnverifiedReason.ALTERED_NAME
    assert len(claimed.principal) == MAX_CHARACTERS
    assert claimed.principal.endswith("a… (5000 bytes) (unverified)")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"])
@pytest.mark.parametrize(
    "token",
    [
        bytes(500_000),
        b"\0" + b"\xff" * 500_000 + b"\0x",
        b"n,," + b"," * 500_000,
        b"n,,n=" + b"a" * 500_000,
        bearer_message(b"." * 500_000),
        bearer_message(b"a." + b"W1tb" * 125_000),
        b"\x01" * 500_000,
    ],
)
def test_parsing_a_giant_token_takes_no_more_cpu_time_than_a_few_copies(mechanism: str, token: bytes) -> None:
    copies = cpu_seconds_of_call(lambda: [token.replace(b"q", b"r") for _ in range(20)])

    assert cpu_seconds_of_call(lambda: principal_in(mechanism, token, DECLARED)) < copies + 0.001
