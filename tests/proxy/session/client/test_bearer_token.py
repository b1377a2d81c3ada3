"""The user name in a token is derived as in Strimzi's login handler. The values are those of PrincipalExtractor in
kafka-oauth-common 0.17.1, with the prefix `p-`, the fallback claim `['c']` and its prefix `svc-`.
"""

import base64
import json

import pytest

from sluicegate.proxy.session.client.bearer_token import StrimziClaims, name_in_token, user_names_of
from tests.config.reading import SMALLEST, load_text, problems_of_text

NESTED = {"user": {"id": "n"}, "us.er": {"id": "dot"}, "user.id": "flat", "sub": "s"}


def name_from_claim(claim: str, claims: object) -> str | None:
    fallback = "oauth.fallback.username.claim: \"['c']\", oauth.fallback.username.prefix: svc-"
    keys = f"oauth.username.claim: {json.dumps(claim)}, oauth.username.prefix: p-, {fallback}, "
    names = user_names_of(load_text(SMALLEST.replace("listen: {", f"listen: {{{keys}")).config.listen)
    assert isinstance(names, StrimziClaims)
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
    return name_in_token(b"n,,\x01auth=Bearer a." + payload + b".c\x01\x01", names)


@pytest.mark.parametrize(
    ("claim", "claims", "expected"),
    [
        ("sub", NESTED, "p-s"),
        ("user.id", NESTED, "p-flat"),
        ("['user'].['id']", NESTED, "p-n"),
        ("['user']['id'] ", NESTED, "p-n"),
        ('["user"]["id"]', NESTED, "p-n"),
        ("['user'].id", NESTED, "p-n"),
        ("['us.er']['id']", NESTED, "p-dot"),
        ("$.user.id", NESTED | {"$.user.id": "plain"}, "p-plain"),
        ("['user'][0]", {"user": ["arr"]}, "p-arr"),
        ("['user']['id']", {"user": {"id": 7}}, "p-7"),
        ("['user']['id']", {"user": {"id": True}}, "p-true"),
        ("['user']['id']", {"user": {"id": None}, "c": "FB"}, "p-null"),
        ("['user']['id']", {"user": {"id": ""}, "c": "FB"}, "svc-FB"),
        ("['user']['id']", {"user": {"id": {"x": 1}}, "c": "FB"}, "svc-FB"),
        ("['user']['id']", {"user": [{"id": 4}], "c": "FB"}, "svc-FB"),
        ("['user']['id']", {"user": "text", "c": "FB"}, "svc-FB"),
        ("['user'][3]", {"user": ["arr"], "c": "FB"}, "svc-FB"),
        ("sub", {"sub": None, "c": "FB"}, "p-null"),
        ("sub", {"sub": ["a"], "c": "FB"}, "svc-FB"),
        ("sub", {"sub": 12345678901234567890}, "p-12345678901234567890"),
        ("sub", {}, None),
        (
            "sub",
            {"sub": 1e30, "c": "FB"},
            None,
        ),  # Java writes 1.0E30, so the principal is unknown, and the fallback does not apply
    ],
)
def test_extracts_the_same_user_name_as_strimzi(claim: str, claims: object, expected: str | None) -> None:
    assert name_from_claim(claim, claims) == expected


@pytest.mark.parametrize("claim", ["[user].[id]", "['a'", "[*]", "['a']..['b']", "['a','b']", "['a']" * 40, "['a']x"])
def test_rejects_claim_path_that_does_not_select_exactly_one_claim(claim: str) -> None:
    (problem,) = problems_of_text(
        SMALLEST.replace("listen: {", f"listen: {{oauth.username.claim: {json.dumps(claim)}, ")
    )

    assert "expected the path of one claim" in problem
