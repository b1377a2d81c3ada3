"""The doctor compares brokers' settings with a declaration of principals. The names are those of Kafka and Strimzi."""

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE
from sluicegate.proxy.doctor.check_result import Level
from sluicegate.proxy.doctor.checks import CheckedCluster
from sluicegate.proxy.doctor.principals import CHECK, contradicting_settings
from tests.config.reading import SMALLEST, load_text
from tests.proxy.scripted_broker import ScriptedBroker, metadata_of_brokers

_DEFAULT = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
_STRIMZI_BUILDER = "io.strimzi.kafka.oauth.server.OAuthKafkaPrincipalBuilder"
_STRIMZI_PLAIN = "io.strimzi.kafka.oauth.server.plain.JaasServerOauthOverPlainValidatorCallbackHandler"
_STRIMZI_BEARER = "io.strimzi.kafka.oauth.server.JaasServerOauthValidatorCallbackHandler"
_KAFKA_BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
_BUILDER, _HANDLER = "principal.builder.class", "sasl.server.callback.handler.class"
_CLAIM = "sasl.oauthbearer.sub.claim.name"
_NAMES = "user_name_is_principal: [PLAIN, SCRAM-SHA-512]"


@pytest.mark.parametrize(
    ("keys", "settings", "found"),
    [
        (_NAMES, {_BUILDER: _DEFAULT, _HANDLER: None}, []),
        (_NAMES, {_BUILDER: _STRIMZI_BUILDER}, []),
        (_NAMES, {_BUILDER: "com.example.Accounts"}, [_BUILDER]),
        (_NAMES, {"listener.name.client-9095.principal.builder.class": "com.example.Accounts"}, [_BUILDER]),
        (_NAMES, {f"listener.name.client.plain.{_HANDLER}": _STRIMZI_PLAIN}, [_HANDLER]),
        (_NAMES, {f"listener.name.client.scram-sha-512.{_HANDLER}": "com.example.Handler"}, [_HANDLER]),
        (_NAMES, {f"listener.name.client.scram-sha-256.{_HANDLER}": "com.example.Handler"}, []),
        (_NAMES, {f"listener.name.client.oauthbearer.{_HANDLER}": _KAFKA_BEARER}, []),
        (_NAMES, {_HANDLER: "com.example.Handler"}, [_HANDLER]),
        (_NAMES, {_CLAIM: "azp"}, []),
        (f"{_CLAIM}: azp", {_CLAIM: "sub"}, [_CLAIM]),
        (f"{_CLAIM}: azp", {_CLAIM: "sub", f"listener.name.client.{_CLAIM}": "azp"}, []),
        (f"{_CLAIM}: sub", {_CLAIM: "sub", f"listener.name.client.oauthbearer.{_HANDLER}": _KAFKA_BEARER}, []),
        (
            f"{_CLAIM}: sub",
            {_CLAIM: "sub", f"listener.name.client.oauthbearer.{_HANDLER}": _STRIMZI_BEARER},
            [_HANDLER],
        ),
        ("oauth.username.claim: sub", {f"listener.name.client.oauthbearer.{_HANDLER}": _STRIMZI_BEARER}, []),
        ("oauth.username.claim: sub", {_BUILDER: "com.example.Accounts"}, [_BUILDER]),
        (_NAMES, {"listener.name.client.plain.sasl.jaas.config": None, "my.principal.builder.class.name": "x"}, []),
    ],
)
def test_broker_settings_that_contradict_a_declaration_are_found(
    keys: str, settings: dict[str, str | None], found: list[str]
) -> None:
    listen = load_text(SMALLEST.replace("listen: {", f"listen: {{{keys}, ")).config.listen

    contradicting = [each.setting for each in contradicting_settings(listen, settings)]

    assert len(contradicting) == len(found)
    assert all(each.endswith(name) for each, name in zip(contradicting, found, strict=True))


@pytest.mark.parametrize(
    ("code", "value", "level", "words"),
    [
        (0, _DEFAULT, Level.OK, "the default principal builder and Kafka's handlers of logins at brokers 7"),
        (0, "com.example.Accounts", Level.WARNING, "broker 7 has principal.builder.class=com.example.Accounts: "),
        (31, "", Level.NOT_CHECKED, "broker 7: CLUSTER_AUTHORIZATION_FAILED (31), "),
    ],
)
async def test_queries_each_broker_for_its_own_principal_settings(
    code: int, value: str, level: Level, words: str
) -> None:
    asked = []

    def respond_with_principal_settings(version: int, body: bytes) -> bytes:
        (resource,) = DESCRIBE_CONFIGS_REQUEST.parse(body, version)["resources"]
        asked.append((resource["resource_type"], resource["resource_name"]))
        entry = {"name": _BUILDER, "value": value, "read_only": True, "is_sensitive": False}
        result = {"error_code": code, "error_message": None, "resource_type": 4, "resource_name": "7"}
        return DESCRIBE_CONFIGS_RESPONSE.build(
            {"throttle_time_ms": 0, "results": [result | {"configs": [] if code else [entry]}]}, version
        )

    async with ScriptedBroker({ApiKey.DESCRIBE_CONFIGS: respond_with_principal_settings}) as broker:
        broker.answers[ApiKey.METADATA] = metadata_of_brokers((7, broker.address.host, broker.address.port))
        config = load_text(SMALLEST.replace("listen: {", f"listen: {{{_NAMES}, ")).config
        found = [each async for each in CHECK.run(CheckedCluster(config, None, broker.address))]

    assert asked == [(4, "7")]
    assert [each.level for each in found] == [level]
    assert found[0].found.startswith(words)


async def test_no_broker_is_queried_without_principal_declaration_or_policy() -> None:
    async with ScriptedBroker({}) as broker:
        found = [each async for each in CHECK.run(CheckedCluster(load_text(SMALLEST).config, None, broker.address))]

    assert found == []
    assert broker.connections == 0
