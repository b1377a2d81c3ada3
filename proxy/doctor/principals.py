"""Compares what `listen` declares about principals with the brokers' own settings, if the proxy's
login may read them.
"""

import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from sluicegate.config.listen import Listen
from sluicegate.config.remarks import named_principal
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.cluster.broker_client import NoBrokerResponses, ask_any_broker
from sluicegate.proxy.cluster.broker_settings import BrokerSettings, SettingsHidden, ask_for_settings
from sluicegate.proxy.cluster.discovery import discover_cluster
from sluicegate.proxy.doctor.check_result import CheckResult, Level, names_shortened
from sluicegate.proxy.doctor.checks import CheckedCluster, ClusterCheck
from sluicegate.proxy.session.opening.loop_detection import new_mark

_ABOUT = "broker principals"
_MOST_BROKERS = 20
_BUILDER = "principal.builder.class"
_HANDLER = "sasl.server.callback.handler.class"
_CLAIM = "sasl.oauthbearer.sub.claim.name"
# The prefix of a setting for one listener, and for one mechanism of that listener (KIP-103, saslMechanismPrefix of
# KafkaConfig).
_SETTING = re.compile(
    rf"(?:listener\.name\.[^.]+\.)?(?:(?P<mechanism>[a-z0-9-]+)\.)?"
    rf"(?P<name>{'|'.join(map(re.escape, (_BUILDER, _HANDLER, _CLAIM)))})"
)
_OF_KAFKA, _OF_STRIMZI = "org.apache.kafka.", "io.strimzi.kafka.oauth."
# Strimzi's builder derives principals like the default builder, except for logins that its own handlers check.
_USUAL_BUILDERS = frozenset(
    {
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        f"{_OF_STRIMZI}server.OAuthKafkaPrincipalBuilder",
    }
)
_BY_HAND = f"check the brokers' {_BUILDER} and {_HANDLER} yourself"
_ALLOW = f"allow the proxy's login DESCRIBE_CONFIGS on the cluster, or {_BY_HAND}"
_COMPARE = (
    "compare an event's principal with the broker's authorizer log (kafka-authorizer.log); if they differ, remove the "
    "key from listen"
)


class _Sign(NamedTuple):
    """A setting that may contradict a declaration in `listen`, and the key of that declaration."""

    setting: str
    value: str
    declared_by: str


def contradicting_settings(listen: Listen, settings: BrokerSettings) -> Iterator[_Sign]:
    """Yield the settings of one broker that contradict the declarations."""
    claims = set()
    for setting, value in settings.items():
        found = _SETTING.fullmatch(setting)
        if found is None or not value:
            continue
        mechanism = found["mechanism"]
        if found["name"] == _CLAIM:
            claims.add(value)
        elif found["name"] == _BUILDER:
            if value not in _USUAL_BUILDERS:
                yield _Sign(setting, value, _declaring(listen))
        elif _is_other_user(listen, mechanism, value):
            yield _Sign(setting, value, "listen.user_name_is_principal")
        elif listen.oauthbearer_claim is not None and mechanism == "oauthbearer" and not value.startswith(_OF_KAFKA):
            yield _Sign(setting, value, f"listen.{_CLAIM}")
    if listen.oauthbearer_claim is not None and claims and listen.oauthbearer_claim not in claims:
        yield _Sign(_CLAIM, ", ".join(sorted(claims)), f"listen.{_CLAIM} ({listen.oauthbearer_claim})")


def _is_other_user(listen: Listen, mechanism: str | None, handler: str) -> bool:
    """Return whether a declared mechanism's login handler may accept a user name that is not the principal."""
    declared = {each.lower() for each in listen.user_name_is_principal}
    concerned = bool(declared) if mechanism is None else mechanism in declared
    return concerned and not handler.startswith(_OF_KAFKA)


def _declaring(listen: Listen) -> str:
    keys = ["user_name_is_principal"] if listen.user_name_is_principal else []
    keys += [_CLAIM] if listen.oauthbearer_claim is not None else []
    keys += ["oauth.username.claim"] if listen.oauth_username_claim is not None else []
    return ", ".join(f"listen.{key}" for key in keys) or "no key of listen"


async def _check(cluster: CheckedCluster) -> AsyncIterator[CheckResult]:
    """Yield each broker's contradictions, or a single result if there are none."""
    config = cluster.config
    if not config.listen.declares_principals and named_principal(config) is None:
        return
    listed = await discover_cluster(replace(config.upstream, bootstrap=(cluster.asked,)), cluster.tls, new_mark())
    examined = []
    for node_id, address in sorted((listed.brokers or {}).items())[:_MOST_BROKERS]:
        settings = await _settings_of(cluster, node_id, address)
        if isinstance(settings, SettingsHidden):
            yield CheckResult(_ABOUT, Level.NOT_CHECKED, f"broker {node_id}: {settings.reason}", _ALLOW)
            return
        found = list(contradicting_settings(config.listen, settings))
        for setting, value, declared_by in found:
            words = f"broker {node_id} has {setting}={value}: its principals may differ from {declared_by}"
            yield CheckResult(_ABOUT, Level.WARNING, words, _COMPARE)
        if found:
            return  # the other brokers have the same configuration
        examined.append(str(node_id))
    if examined:
        words = f"the default principal builder and Kafka's handlers of logins at brokers {names_shortened(examined)}"
        yield CheckResult(_ABOUT, Level.OK, words)


async def _settings_of(cluster: CheckedCluster, node_id: int, address: HostPort) -> BrokerSettings | SettingsHidden:
    alone = replace(cluster.config.upstream, bootstrap=(address,))
    try:
        _, settings = await ask_any_broker(alone, cluster.tls, partial(ask_for_settings, node_id))
    except NoBrokerResponses as error:
        return SettingsHidden(str(error).removeprefix(f"{address}: "))
    return settings


CHECK = ClusterCheck(16, (), _check)
