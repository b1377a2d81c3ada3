"""Warns about mechanisms with which a client signs the host name to which it connects.

That name is the proxy's, so a broker may reject the login. The check also names mechanisms whose principals are
unverified.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

from sluicegate.config.listen import Listen
from sluicegate.config.remarks import named_principal
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.handshake import SASL_HANDSHAKE_REQUEST, SASL_HANDSHAKE_RESPONSE
from sluicegate.proxy.cluster.broker_client import BrokerClient, NoBrokerResponses, ask_any_broker
from sluicegate.proxy.cluster.response_bodies import read_response
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import CheckedCluster, ClusterCheck

_ABOUT = "mechanisms"
_VERSION = 1
_NONE = "-"  # no broker offers this mechanism, so the response lists those that it does offer
_ADVICE = {
    "GSSAPI": "add a principal kafka/NAME@REALM to the brokers' keytabs for each name that the proxy advertises",
    "AWS_MSK_IAM": "let clients of the proxy log in with SCRAM or certificates: brokers reject a signature for a "
    "name other than their own",
}


async def _check(cluster: CheckedCluster) -> AsyncIterator[CheckResult]:
    """Yield a warning for each mechanism of this kind that the broker offers, and a note about
    unverified principals.
    """
    alone = replace(cluster.config.upstream, bootstrap=(cluster.asked,), sasl=None)
    try:
        _, offered = await ask_any_broker(alone, cluster.tls, _offered)
    except NoBrokerResponses:
        return  # the checks of the brokers report this failure
    for mechanism, advice in _ADVICE.items():
        if mechanism in offered:
            found = f"the brokers offer {mechanism}: the client signs for the proxy's name, not for the broker's"
            yield CheckResult(_ABOUT, Level.WARNING, found, advice)
    unverified = sorted(offered - _declared(cluster.config.listen))
    if unverified and named_principal(cluster.config) is not None:
        found = f"principals of clients that log in with {', '.join(unverified)} are unverified"
        yield CheckResult(_ABOUT, Level.NOTE, found)


def _declared(listen: Listen) -> frozenset[str]:
    """Return the mechanisms for which `listen` declares how brokers derive principals."""
    bearer = () if listen.user_claim is None else ("OAUTHBEARER",)
    return frozenset((*listen.user_name_is_principal, *bearer))


async def _offered(client: BrokerClient) -> frozenset[str]:
    body = SASL_HANDSHAKE_REQUEST.build({"mechanism": _NONE}, _VERSION)
    response = await client.call(ApiKey.SASL_HANDSHAKE, _VERSION, body)
    return frozenset(read_response(SASL_HANDSHAKE_RESPONSE, response, _VERSION)["mechanisms"])


CHECK = ClusterCheck(15, (), _check)
