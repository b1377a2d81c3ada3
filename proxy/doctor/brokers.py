"""Checks whether each address responds as a broker, which brokers exist, and which API versions they offer."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.proxy.cluster.broker_client import BrokerClient, NoBrokerResponses, ask_any_broker
from sluicegate.proxy.cluster.discovery import discover_cluster
from sluicegate.proxy.doctor.check_result import CheckResult, Level, names_shortened
from sluicegate.proxy.doctor.names import resolve_name
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.proxy.session.opening.loop_detection import new_mark

_MOST_BROKERS = 100
_AT_ONCE = 8
_PROBE_SECONDS = 5.0
# Kafka 4.0 removed older versions (KIP-896).
_FIRST_FETCH_OF_4 = 4
_SET = "set upstream."
_NO_BROKER = "list the brokers' client listeners in upstream.bootstrap"
# The advice for a reason that contains the given words. The first matching entry applies.
_ADVICE = (
    ("plaintext port", "remove upstream.tls, or use the brokers' TLS listener"),
    ("Connection refused", "start the broker, or correct the port: it must be a client listener"),
    ("no response within", "check routes and firewalls between this machine and the broker"),
    ("certificate is not accepted", "set upstream.tls.ca_file to the CA of the brokers' certificates"),
)


@dataclass(slots=True)
class SurveyedBrokers:
    """The brokers by node id.

    `answering` contains the addresses that respond, `let_in` those that accept the proxy's own requests.
    """

    results: list[CheckResult] = field(default_factory=list)
    brokers: dict[int, HostPort] = field(default_factory=dict)
    answering: list[HostPort] = field(default_factory=list)
    let_in: list[HostPort] = field(default_factory=list)


async def survey_brokers(upstream: Upstream, tls: TlsContext | None) -> SurveyedBrokers:
    """Query each bootstrap address, and then each broker that they list."""
    seen = SurveyedBrokers()
    for address in upstream.bootstrap:
        await _look_at(address, upstream, tls, seen)
    seen.brokers = {**seen.brokers, **upstream.brokers}
    if seen.answering:
        seen.results += await _versions(upstream, tls, seen.brokers)
    return seen


async def _look_at(address: HostPort, upstream: Upstream, tls: TlsContext | None, seen: SurveyedBrokers) -> None:
    about = f"broker at {address}"
    if await resolve_name(address.host) is None:  # an unresolved name is reported as a separate failure
        seen.results.append(CheckResult(about, Level.NOT_CHECKED, f"this machine does not resolve {address.host}"))
        return
    found = await discover_cluster(replace(upstream, bootstrap=(address,)), tls, new_mark())
    if found.answered_by is None:
        reason = (found.reason or "no response").removeprefix(f"{address}: ")
        if "HTTP" in reason or (tls is None and await _speaks_http(address)):
            seen.results.append(CheckResult(about, Level.FAILURE, "is an HTTP port, not a Kafka listener", _NO_BROKER))
        elif found.is_no_broker:
            seen.results.append(CheckResult(about, Level.FAILURE, reason, _NO_BROKER))
        else:
            seen.results.append(CheckResult(about, Level.FAILURE, *_split(reason)))
        return
    seen.answering.append(address)
    if found.login_rejected is not None:
        reason = found.login_rejected.removeprefix(f"{address}: ")
        seen.results.append(CheckResult(about, Level.FAILURE, reason, "correct upstream.sasl"))
    elif found.brokers is None:
        level = Level.NOTE if upstream.brokers else Level.WARNING
        advice = "set upstream.sasl to a login that may describe the cluster and topic configurations"
        seen.results.append(CheckResult(about, level, "requires a login (SASL)", advice))
    else:
        seen.let_in.append(address)
        seen.brokers.update(found.brokers)
        if found.brokers:
            seen.results.append(CheckResult(about, Level.OK, f"responds; brokers in the cluster: {len(found.brokers)}"))
        else:
            advice = "check the cluster's controllers: without a quorum they fence all brokers"
            seen.results.append(CheckResult(about, Level.FAILURE, "responds, but lists no broker", advice))


def _split(reason: str) -> tuple[str, str]:
    """Split a reason into the reason and its advice: the advice that it contains, or else the advice for its kind."""
    head, colon, tail = reason.rpartition(": ")
    if colon and _SET in tail:
        return head, tail
    advice = (advice for part, advice in _ADVICE if part in reason)
    return reason, next(advice, "check that the broker is up and that this is its client listener")


async def _speaks_http(address: HostPort) -> bool:
    """Return whether an HTTP request gets an HTTP response."""
    with suppress(OSError, TimeoutError, UnicodeError):
        async with asyncio.timeout(_PROBE_SECONDS):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            try:
                writer.write(b"GET / HTTP/1.0\r\n\r\n")
                return await reader.read(5) == b"HTTP/"
            finally:
                writer.transport.abort()
    return False


async def _offered_at(address: HostPort, upstream: Upstream, tls: TlsContext | None) -> Mapping[int, range] | str:
    """Return the API versions, which a broker reports even without a login, or the reason why there is no response."""
    try:
        _, offered = await ask_any_broker(replace(upstream, bootstrap=(address,), sasl=None), tls, _offered)
    except NoBrokerResponses as error:
        return str(error).removeprefix(f"{address}: ")
    return offered


async def _offered(client: BrokerClient) -> Mapping[int, range]:
    return client.offered


async def _versions(upstream: Upstream, tls: TlsContext | None, brokers: Mapping[int, HostPort]) -> list[CheckResult]:
    at_once = asyncio.Semaphore(_AT_ONCE)
    asked = sorted(brokers.items())[:_MOST_BROKERS]

    async def ask(address: HostPort) -> Mapping[int, range] | str:
        async with at_once:
            return await _offered_at(address, upstream, tls)

    responses = await asyncio.gather(*(ask(address) for _, address in asked))
    found = []
    offers: dict[int, Mapping[int, range]] = {}
    for (node_id, address), response in zip(asked, responses, strict=True):
        about = f"broker {node_id}"
        if isinstance(response, str):
            advice = "make the address that this broker advertises reachable from this machine"
            found.append(CheckResult(about, Level.FAILURE, f"{address}: {response}", advice))
        else:
            offers[node_id] = response
            found.append(CheckResult(about, *_read(address, response)))
    groups: dict[str, list[str]] = {}
    for node_id, offered in offers.items():
        groups.setdefault(repr(sorted(offered.items())), []).append(str(node_id))
    if len(groups) > 1:
        differing = "; ".join(f"brokers {names_shortened(nodes)}" for nodes in groups.values())
        advice = "complete the brokers' upgrade"
        found.append(CheckResult("broker versions", Level.WARNING, f"differ: {differing}", advice))
    return found


def _read(address: HostPort, offered: Mapping[int, range]) -> tuple[Level, str, str]:
    produce, fetch = offered.get(ApiKey.PRODUCE), offered.get(ApiKey.FETCH)
    if produce is None or fetch is None:
        return Level.FAILURE, f"{address} does not support Produce and Fetch", _NO_BROKER
    release = "Kafka 4.0 or later" if fetch.start >= _FIRST_FETCH_OF_4 else "older than Kafka 4.0"
    found = f"{address} supports Produce up to v{produce.stop - 1}, as {release}"
    newer = [APIS[key].name for key, there in offered.items() if key in APIS and there.stop - 1 > APIS[key].max_version]
    if newer:
        found += f"; the proxy offers clients lower versions of {names_shortened(newer)}"
    return Level.OK, found, ""
