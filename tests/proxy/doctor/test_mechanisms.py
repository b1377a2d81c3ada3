"""Mechanisms that sign a host name are reported, because clients sign the proxy's host name."""

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.handshake import SASL_HANDSHAKE_RESPONSE
from sluicegate.proxy.doctor.check_result import Level
from sluicegate.proxy.doctor.checks import CheckedCluster
from sluicegate.proxy.doctor.mechanisms import CHECK
from tests.config.reading import SMALLEST, load_text
from tests.proxy.scripted_broker import ScriptedBroker


@pytest.mark.parametrize(
    ("offered", "reported"),
    [
        (["GSSAPI", "SCRAM-SHA-512"], ["GSSAPI"]),
        (["AWS_MSK_IAM"], ["AWS_MSK_IAM"]),
        (["PLAIN", "OAUTHBEARER"], []),
        ([], []),
    ],
)
async def test_a_mechanism_that_signs_the_hosts_name_is_a_warning(offered: list[str], reported: list[str]) -> None:
    response = {"error_code": 33 if offered else 34, "mechanisms": offered}
    answers = {ApiKey.SASL_HANDSHAKE: lambda version, _: SASL_HANDSHAKE_RESPONSE.build(response, version)}
    async with ScriptedBroker(answers) as broker:
        cluster = CheckedCluster(load_text(SMALLEST).config, None, broker.address)
        found = [result async for result in CHECK.run(cluster)]

    assert [each.level for each in found] == [Level.WARNING] * len(reported)
    for each, mechanism in zip(found, reported, strict=True):
        assert f"offer {mechanism}: the client signs for the proxy's name" in each.found


@pytest.mark.parametrize(
    ("listen", "policy", "reported"),
    [
        ("user_name_is_principal: [PLAIN], ", "exempt: [{principal: 'User:a'}]", ["OAUTHBEARER, SCRAM-SHA-512"]),
        ("sasl.oauthbearer.sub.claim.name: sub, ", "exempt: [{principal: 'User:a'}]", ["PLAIN, SCRAM-SHA-512"]),
        ("", "exempt: [{client_id: a}]", []),
    ],
)
async def test_mechanisms_with_unverified_principals_are_named_if_a_policy_depends_on_one(
    listen: str, policy: str, reported: list[str]
) -> None:
    response = {"error_code": 33, "mechanisms": ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"]}
    answers = {ApiKey.SASL_HANDSHAKE: lambda version, _: SASL_HANDSHAKE_RESPONSE.build(response, version)}
    async with ScriptedBroker(answers) as broker:
        config = load_text(SMALLEST.replace("listen: {", f"listen: {{{listen}") + policy).config
        found = [result async for result in CHECK.run(CheckedCluster(config, None, broker.address))]

    assert [(each.level, each.found) for each in found] == [
        (Level.NOTE, f"principals of clients that log in with {names} are unverified") for names in reported
    ]
