"""Sets up a new connection's socket, and determines its peer's addresses, TLS names and certificate."""

import socket
import ssl
from typing import Any, cast

from sluicegate.proxy.network.tls.certificate_principal import principal_of
from sluicegate.proxy.network.tls.contexts import RequestedNames
from sluicegate.proxy.session.outlets import PeerInfo

_KINDS = frozenset({"DNS", "email", "URI", "IP Address"})
_Subject = tuple[tuple[tuple[str, str], ...], ...]


def certificate_names(handshake: ssl.SSLObject) -> tuple[str, ...]:
    """Return the names in a peer's certificate, or none without a certificate.

    They are the subject's common names, and the alternative names that are hosts, mail addresses, URIs or IP addresses.
    """
    certificate = handshake.getpeercert()
    if not certificate:
        return ()
    subject = cast(_Subject, certificate.get("subject", ()))
    alternative = cast(tuple[tuple[str, str], ...], certificate.get("subjectAltName", ()))
    common = (value for attributes in subject for key, value in attributes if key == "commonName")
    return (*common, *(value for kind, value in alternative if kind in _KINDS))


_UNKNOWN = "?"


class ClientIntroduction:
    """Describes a client's connection. With TLS this includes the requested server name and the certificate's names."""

    def __init__(self, requested_names: RequestedNames) -> None:
        self._requested_names = requested_names

    def __call__(self, transport: Any) -> PeerInfo:
        prepare_socket(transport)
        handshake: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        peer, local_address = ends_of(transport)
        if handshake is None:
            return PeerInfo(peer, local_address)
        server_name = self._requested_names.of(handshake)
        return PeerInfo(peer, local_address, True, server_name, principal_of(handshake), certificate_names(handshake))


def describe_broker(transport: Any) -> PeerInfo:
    """Describe a connection to a broker."""
    prepare_socket(transport)
    return PeerInfo(*ends_of(transport), is_tls=transport.get_extra_info("ssl_object") is not None)


def prepare_socket(transport: Any) -> None:
    """Set TCP_NODELAY, so that small frames leave at once, and SO_KEEPALIVE, to detect a peer that has vanished."""
    raw: socket.socket | None = transport.get_extra_info("socket")
    if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def ends_of(transport: Any) -> tuple[str, str]:
    """Return the addresses of the peer and of the proxy, each as host:port."""
    return _shown(transport.get_extra_info("peername")), _shown(transport.get_extra_info("sockname"))


def _shown(name: Any) -> str:
    return f"{name[0]}:{name[1]}" if name else _UNKNOWN
