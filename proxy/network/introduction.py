"""A connection that is new: its socket is made ready, and whom it leads to is found out."""

import socket
import ssl
from typing import Any, cast

from sluicegate.proxy.network.tls.contexts import AskedNames, principal_of
from sluicegate.proxy.session.outlets import Introduced

_KINDS = frozenset({"DNS", "email", "URI", "IP Address"})
_Subject = tuple[tuple[tuple[str, str], ...], ...]


def names_of(handshake: ssl.SSLObject) -> tuple[str, ...]:
    """The subject's common names, and the alternative names that are hosts, mail addresses, URIs or addresses; none
    without a certificate.
    """
    certificate = handshake.getpeercert()
    if not certificate:
        return ()
    subject = cast(_Subject, certificate.get("subject", ()))
    alternative = cast(tuple[tuple[str, str], ...], certificate.get("subjectAltName", ()))
    common = (value for attributes in subject for key, value in attributes if key == "commonName")
    return (*common, *(value for kind, value in alternative if kind in _KINDS))


_NOBODY = "?"


class ClientIntroduction:
    """For connections of clients: a TLS one also tells which host it asked for, and who its certificate says it is."""

    def __init__(self, asked_names: AskedNames) -> None:
        self._asked_names = asked_names

    def __call__(self, transport: Any) -> Introduced:
        make_ready(transport)
        handshake: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
        peer, own_end = ends_of(transport)
        if handshake is None:
            return Introduced(peer, own_end)
        asked_name = self._asked_names.of(handshake)
        return Introduced(peer, own_end, True, asked_name, principal_of(handshake), names_of(handshake))


def introduce_broker(transport: Any) -> Introduced:
    """For connections to brokers."""
    make_ready(transport)
    return Introduced(*ends_of(transport), is_tls=transport.get_extra_info("ssl_object") is not None)


def make_ready(transport: Any) -> None:
    """Small frames leave at once, and a peer that has vanished is noticed."""
    raw: socket.socket | None = transport.get_extra_info("socket")
    if raw is not None and raw.family in (socket.AF_INET, socket.AF_INET6):
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def ends_of(transport: Any) -> tuple[str, str]:
    """The other end and ours, each as host:port."""
    return _shown(transport.get_extra_info("peername")), _shown(transport.get_extra_info("sockname"))


def _shown(name: Any) -> str:
    return f"{name[0]}:{name[1]}" if name else _NOBODY
