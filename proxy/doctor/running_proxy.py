"""Identifies the process at a port that is in use: a running proxy with this configuration, or another process.

With TLS, the certificate identifies the process. Then doctor asks the process for the list of brokers, as a client
would. A proxy with this configuration responds with the addresses that the configuration advertises. If this machine
may not connect as a client, the admin endpoint identifies the proxy.
"""

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass

from cryptography.hazmat.primitives.serialization import Encoding

from sluicegate.config.model import Config
from sluicegate.config.tls import UpstreamTls
from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.cluster.discovery import discover_cluster
from sluicegate.proxy.doctor.check_result import Level
from sluicegate.proxy.network.tls.certificates import first_certificate
from sluicegate.proxy.network.tls.contexts import TlsContext, tls_failure_message
from sluicegate.proxy.session.opening.loop_detection import new_mark
from sluicegate.proxy.status.condition import ServingState

_SECONDS = 5.0
_MOST_BYTES = 64 << 10
_STOP = "stop the process that listens there (ss -ltnp shows it), or choose another port"


@dataclass(frozen=True, slots=True)
class Identity:
    """The result of the identification.

    `is_proxy` is true if the process is a proxy with this configuration. `is_kafka` is true if it speaks Kafka's
    protocol at all.
    """

    is_proxy: bool
    level: Level
    found: str
    advice: str = ""
    is_kafka: bool = False


def reachable_address(address: HostPort) -> HostPort:
    """Return the address at which this machine reaches a listener."""
    if not address.is_wildcard:
        return address
    return HostPort("::1" if address.host == "::" else "127.0.0.1", address.port)


async def identify(config: Config, address: HostPort) -> Identity:
    """Identify the process at `address`, which leads to the port of `listen.bootstrap`."""
    seen = await _as_a_client(config, address)
    if seen.is_proxy or seen.is_kafka or not await _admin_responds(config):
        return seen
    found = f"{address} is in use; a proxy responds at admin.listen, but clients may not connect from this machine"
    return Identity(True, Level.OK, found)


async def _as_a_client(config: Config, address: HostPort) -> Identity:
    listen = config.listen
    if listen.proxy_protocol == "required":
        found = f"{address} is in use, and accepts only load balancers (listen.proxy_protocol)"
        return Identity(False, Level.NOT_CHECKED, found, "stop the proxy, or check /readyz at admin.listen")
    tls = None
    if listen.tls is not None:
        own = await asyncio.to_thread(first_certificate, listen.tls.certificate_file)
        try:
            shown = await _certificate_at(address)
        except (OSError, TimeoutError) as error:
            reason = _SILENT if isinstance(error, TimeoutError) else tls_failure_message(error)
            return Identity(False, Level.FAILURE, f"{address} does not respond with TLS: {reason}", _STOP)
        if own is None or shown != own.public_bytes(Encoding.DER):
            found = f"{address} presents a certificate other than listen.tls.certificate_file"
            return Identity(False, Level.FAILURE, found, _STOP)
        if listen.tls.client_auth == "required":
            return Identity(True, Level.OK, f"{address} presents listen.tls.certificate_file")
        tls = TlsContext("listen.tls", [], lambda _: _trusting(), lambda: None)
    return await _by_its_brokers(config, address, tls)


_SILENT = f"no response within {_SECONDS:.0f} s"


async def _by_its_brokers(config: Config, address: HostPort, tls: TlsContext | None) -> Identity:
    upstream_tls = UpstreamTls(verify_hostname=False) if tls is not None else None
    asked = Upstream(bootstrap=(address,), tls=upstream_tls, connect_timeout_seconds=_SECONDS)
    found = await discover_cluster(asked, tls, new_mark())
    if found.answered_by is None and tls is not None:  # the cluster may be unreachable
        return Identity(True, Level.OK, f"{address} presents listen.tls.certificate_file")
    if found.answered_by is None:
        reason = (found.reason or "").removeprefix(f"{address}: ")
        return Identity(False, Level.FAILURE, f"{address} does not respond as Kafka: {reason}", _STOP)
    if found.brokers is None:
        return Identity(
            True, Level.NOTE, f"{address} responds, and lists its brokers only after a login", is_kafka=True
        )
    wrong = {node: other for node, other in found.brokers.items() if str(other) != config.listen.address_of(node)}
    if wrong:
        node, other = next(iter(wrong.items()))
        expected = config.listen.address_of(node)
        said = f"{address} responds, but advertises {other} for broker {node}; this configuration advertises {expected}"
        return Identity(False, Level.FAILURE, said, _STOP, is_kafka=True)
    return Identity(True, Level.OK, f"{address} is a running proxy of this configuration", is_kafka=True)


def _trusting() -> ssl.SSLContext:
    """Return a context that accepts any certificate, because doctor compares it with the configured one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _certificate_at(address: HostPort) -> bytes | None:
    """Return the certificate (DER) that a TLS server presents. Raises OSError and TimeoutError."""
    async with asyncio.timeout(_SECONDS):
        _, writer = await asyncio.open_connection(address.host, address.port, ssl=_trusting())
    handshake: ssl.SSLObject = writer.get_extra_info("ssl_object")
    writer.transport.abort()
    return handshake.getpeercert(binary_form=True)


async def _admin_responds(config: Config) -> bool:
    """Return whether a proxy responds at `admin.listen`. The first line of its /readyz is one of the states."""
    if config.admin.listen is None or config.admin.listen.port == 0:
        return False
    at = reachable_address(config.admin.listen)
    body = b""
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_SECONDS):
            reader, writer = await asyncio.open_connection(at.host, at.port)
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            body = (await reader.read(_MOST_BYTES)).partition(b"\r\n\r\n")[2]
            writer.close()
    return body.split(b"\n")[0].strip().decode(errors="replace") in {state.value for state in ServingState}
