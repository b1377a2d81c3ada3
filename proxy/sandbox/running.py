"""Runs a sandbox: a cluster, the proxy in front of it, and the report about what clients sent."""

import asyncio
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import uvloop

from sluicegate.config.values.address import HostPort
from sluicegate.proxy.network.listeners import CannotListen
from sluicegate.proxy.reload.topic_explanation import PolicyQuery
from sluicegate.proxy.sandbox.mock_cluster import MockCluster
from sluicegate.proxy.sandbox.policies import sandbox_configuration
from sluicegate.proxy.sandbox.reserved_ports import ReservedPorts
from sluicegate.proxy.sandbox.standard_input import call_at_end_of_input
from sluicegate.proxy.sandbox.violations import ViolationList, allowances
from sluicegate.proxy.server.server import Server
from sluicegate.proxy.server.startup import CannotStart
from sluicegate.proxy.webui.responses import HttpResponse, json_response, text_response

if TYPE_CHECKING:
    from sluicegate.proxy.sandbox.throw_away_cluster import ThrowAwayCluster

_FOR_BROKERS = 2  # the report uses the port after the bootstrap port, and the brokers use the ports after that
_ADVERTISED = "localhost"
_MOCK_ADVICE = (
    "the mock cluster of the sandbox does not support this: use --topics to create topics and classic groups to "
    "consume, or give the sandbox a broker with --upstream HOST:PORT"
)
_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """The options of a sandbox.

    `listen` is the bootstrap address; its port 0 means free ports. `upstream` contains brokers, or nothing for the mock
    cluster. `topics` are created. `allow` contains the values of `--allow`. `stops_with_input` tells whether the
    sandbox stops when its standard input ends.
    """

    configuration: Path
    listen: HostPort
    upstream: tuple[HostPort, ...] = ()
    topics: tuple[str, ...] = ()
    allow: tuple[str, ...] = ()
    stops_with_input: bool = False


@dataclass(frozen=True, slots=True)
class SandboxResult:
    """The result of a run: its violations, and the number of records that the cluster accepted."""

    violations: ViolationList
    accepted_records: int


def run_sandbox(
    options: SandboxOptions, environment: Mapping[str, str], announce: Callable[[str], None]
) -> SandboxResult:
    """Run until Ctrl-C or SIGTERM, and return the result.

    `announce` is called once, as soon as clients can connect, with a line that contains the addresses. Raises
    ConfigError, BadAllowance and CannotStart.
    """
    return uvloop.run(_run(options, environment, announce))


async def _run(
    options: SandboxOptions, environment: Mapping[str, str], announce: Callable[[str], None]
) -> SandboxResult:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if options.stops_with_input:
        call_at_end_of_input(partial(loop.call_soon_threadsafe, stop.set))
    cluster = _cluster(options.upstream)  # the mock cluster ends when this variable is deleted
    ports = ReservedPorts(options.listen.host)
    try:
        keys = {
            "upstream": {"bootstrap": cluster.bootstrap, "topic_settings": bool(options.upstream)},
            **_addresses(options.listen, await asyncio.to_thread(cluster.node_ids), ports),
        }
        loaded = sandbox_configuration(options.configuration, environment, keys)
        violations = ViolationList(allowances(options.allow, loaded.config))
        server = Server(
            loaded.config,
            violations,
            bind=ports.bind,
            policy_query=PolicyQuery(loaded),
            pages={"/report": lambda query: _report(violations, server, query)},
            mock_advice=None if options.upstream else _MOCK_ADVICE,
        )
        await server.start()
    except CannotListen as error:
        raise CannotStart(f"cannot listen on {error}; {error.advice}") from error
    finally:
        ports.close()
    try:
        await asyncio.to_thread(cluster.create_topics, options.topics)
        host = loaded.config.listen.host_for_clients
        bootstrap, report = (HostPort(host, port) for port in (server.bootstrap_address.port, server.admin_port or 0))
        announce(f"sluicegate sandbox: bootstrap.servers={bootstrap} report=http://{report}/report")
        await stop.wait()
    finally:
        await server.drain()
    return SandboxResult(violations, server.snapshot().counters.accepted_records)


def _cluster(upstream: tuple[HostPort, ...]) -> "MockCluster | ThrowAwayCluster":
    if not upstream:
        return MockCluster(brokers=1)
    # Its admin client imports as many modules as the rest of librdkafka's client, and the mock cluster must start fast.
    from sluicegate.proxy.sandbox.throw_away_cluster import ThrowAwayCluster  # noqa: PLC0415

    return ThrowAwayCluster(upstream)


def _addresses(listen: HostPort, node_ids: Sequence[int], ports: ReservedPorts) -> dict[str, Any]:
    """Return the sections `listen` and `admin`.

    They contain free ports, or consecutive ports starting with the port of `listen`. Raises CannotListen.
    """
    if listen.port == 0:
        bootstrap, report = ports.reserve(), HostPort(listen.host, 0)
        of_brokers = [ports.reserve().port for _ in node_ids]
    else:
        bootstrap, report = listen, HostPort(listen.host, listen.port + 1)
        of_brokers = [listen.port + _FOR_BROKERS + place for place in range(len(node_ids))]
    keys: dict[str, Any] = {
        "bootstrap": str(bootstrap),
        "broker_port_map": dict(zip(node_ids, of_brokers, strict=True)),
    }
    if listen.is_wildcard:
        keys["advertised_host"] = _ADVERTISED
    return {"listen": keys, "admin": {"listen": str(report), "web_ui": False}}


def _report(violations: ViolationList, server: Server, query: str) -> HttpResponse:
    after = parse_qs(query).get("after", ["0"])[0]
    if not after.isdecimal() or len(after) > _MOST_DIGITS:
        return text_response(400, "expected /report, or /report?after=NUMBER of the last violation that was read")
    accepted = server.snapshot().counters.accepted_records
    return json_response({"accepted_records": accepted, **violations.as_json(int(after))})
