"""The brokers: who answers at each address that is named, who there is in all, and which versions they speak."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import APIS, ApiKey
from sluicegate.proxy.cluster.broker_client import BrokerClient, NoBrokerResponses, ask_any_broker
from sluicegate.proxy.cluster.discovery import discover_cluster
from sluicegate.proxy.doctor.finding import Finding, Level, some_of
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.proxy.session.opening.loop_detection import new_mark

_MOST_BROKERS = 100
_AT_ONCE = 8
# Kafka 4.0 took away what is older (KIP-896).
_FIRST_FETCH_OF_4 = 4


@dataclass(slots=True)
class Seen:
    """What was seen of a cluster. `answering`: where a broker answers; `let_in`: where it lets the proxy itself ask."""

    findings: list[Finding] = field(default_factory=list)
    brokers: dict[int, HostPort] = field(default_factory=dict)
    answering: list[HostPort] = field(default_factory=list)
    let_in: list[HostPort] = field(default_factory=list)


async def look(upstream: Upstream, tls: TlsContext | None) -> Seen:
    """Ask at every address of the file, and then every broker that those know."""
    seen = Seen()
    for address in upstream.bootstrap:
        await _look_at(address, upstream, tls, seen)
    seen.brokers = {**seen.brokers, **upstream.brokers}
    if seen.answering:
        seen.findings += await _versions(upstream, tls, seen.brokers)
    return seen


async def _look_at(address: HostPort, upstream: Upstream, tls: TlsContext | None, seen: Seen) -> None:
    about = f"broker at {address}"
    found = await discover_cluster(replace(upstream, bootstrap=(address,)), tls, new_mark())
    if found.answered_by is None:
        said = (found.reason or "does not answer").removeprefix(f"{address}: ")
        seen.findings.append(Finding(about, Level.FAULT, said, "is the broker up, and is this its client listener?"))
        return
    seen.answering.append(address)
    if found.login_rejected is not None:
        advice = "correct upstream.sasl; until then clients are served, with the file's own limits"
        seen.findings.append(Finding(about, Level.WARNING, found.login_rejected.removeprefix(f"{address}: "), advice))
    elif found.brokers is None:
        said = "answers, and wants a login before it says more"
        advice = "set upstream.sasl, or name all brokers in upstream.brokers and their limits in the file"
        level = Level.NOTE if upstream.brokers else Level.WARNING
        seen.findings.append(Finding(about, level, said, advice))
    else:
        seen.let_in.append(address)
        seen.brokers.update(found.brokers)
        seen.findings.append(Finding(about, Level.GOOD, f"answers; brokers in the cluster: {len(found.brokers)}"))


async def _versions(upstream: Upstream, tls: TlsContext | None, brokers: Mapping[int, HostPort]) -> list[Finding]:
    turn = asyncio.Semaphore(_AT_ONCE)
    asked = sorted(brokers.items())[:_MOST_BROKERS]

    async def ask(address: HostPort) -> Mapping[int, range] | str:
        # Any broker says it before a login.
        alone = replace(upstream, bootstrap=(address,), sasl=None)
        async with turn:
            try:
                _, offered = await ask_any_broker(alone, tls, _offered)
            except NoBrokerResponses as error:
                return str(error).removeprefix(f"{address}: ")
        return offered

    answers = await asyncio.gather(*(ask(address) for _, address in asked))
    found = []
    told: dict[int, Mapping[int, range]] = {}
    for (node_id, address), answer in zip(asked, answers, strict=True):
        about = f"broker {node_id}"
        if isinstance(answer, str):
            advice = (
                "this machine must reach every broker at the address that it advertises; look at routes and firewalls"
            )
            found.append(Finding(about, Level.FAULT, f"{address}: {answer}", advice))
        else:
            told[node_id] = answer
            found.append(Finding(about, *_read(address, answer)))
    groups: dict[str, list[str]] = {}
    for node_id, offered in told.items():
        groups.setdefault(repr(sorted(offered.items())), []).append(str(node_id))
    if len(groups) > 1:
        said = "; ".join(f"brokers {some_of(nodes)}" for nodes in groups.values())
        found.append(
            Finding("broker versions", Level.WARNING, f"differ: {said}", "an upgrade under way? Then finish it")
        )
    return found


async def _offered(client: BrokerClient) -> Mapping[int, range]:
    return client.offered


def _read(address: HostPort, offered: Mapping[int, range]) -> tuple[Level, str, str]:
    produce, fetch = offered.get(ApiKey.PRODUCE), offered.get(ApiKey.FETCH)
    if produce is None or fetch is None:
        return Level.FAULT, f"{address} takes no Produce or no Fetch", "is this a controller? Name brokers"
    release = "Kafka 4.0 or later" if fetch.start >= _FIRST_FETCH_OF_4 else "older than Kafka 4.0"
    said = f"{address} speaks Produce up to v{produce.stop - 1}, as {release}"
    newer = [APIS[key].name for key, there in offered.items() if key in APIS and there.stop - 1 > APIS[key].max_version]
    if newer:
        said += f"; clients are offered less of {some_of(newer)}"
    return Level.GOOD, said, ""
