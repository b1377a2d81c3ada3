"""Parses headers of PROXY protocol version 2 (HAProxy's specification of 2020).

In such a header, a load balancer sends the client's address. A header has 16 bytes (signature, version and command,
family, length), addresses, and type-length-values, which the proxy ignores. A header of version 1, which is a line of
text, is rejected.
"""

from dataclasses import dataclass
from ipaddress import ip_address
from struct import Struct

from sluicegate.config.listen import Listen
from sluicegate.proxy.network.accept_filter import Networks, parse_networks, without_ipv4_mapping

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_FIXED = Struct(">12sBBH")
FIXED_BYTES = _FIXED.size
MAX_BYTES = 4096
"""The maximum total size of addresses and type-length-values in bytes. The known ones are much smaller."""

_VERSION_1 = b"PROXY "
_VERSION_2 = 0x20
_LOCAL, _PROXY = 0, 1
_TCP_4, _TCP_6 = 0x11, 0x21
_ADDRESSES_4 = Struct(">4s4sHH")
_ADDRESSES_6 = Struct(">16s16sHH")


class BadProxyHeader(Exception):
    """A trusted address did not send a valid header of version 2. The message describes what it sent."""


@dataclass(frozen=True, slots=True)
class ProxyProtocol:
    """The settings of the PROXY protocol.

    `trusted` contains the addresses that may begin a connection with a header. If `is_required` is true, each
    connection from them must begin with one.
    """

    is_required: bool
    trusted: Networks

    def trusts(self, peer: str) -> bool:
        """Return whether headers from `peer` are accepted."""
        return self.trusted.contains(peer)


def proxy_protocol_of(listen: Listen) -> ProxyProtocol | None:
    """Return the configured PROXY protocol settings, or None if the protocol is off."""
    if listen.proxy_protocol is None:
        return None
    return ProxyProtocol(listen.proxy_protocol == "required", parse_networks(listen.proxy_protocol_from))


def may_be_header(head: bytes) -> bool:
    """Return whether `head`, the first bytes of a connection, may be the start of a header."""
    return SIGNATURE.startswith(head[: len(SIGNATURE)])


def remaining_bytes(fixed: bytes) -> int:
    """Return how many bytes follow the first 16 bytes of a header. Raises BadProxyHeader."""
    signature, version, _, length = _FIXED.unpack(fixed)
    if signature != SIGNATURE:
        if fixed.startswith(_VERSION_1):
            raise BadProxyHeader("a PROXY protocol header of version 1: configure the load balancer for version 2")
        raise BadProxyHeader("no PROXY protocol header: configure the load balancer to send one (version 2)")
    if version & 0xF0 != _VERSION_2 or version & 0x0F not in (_LOCAL, _PROXY):
        raise BadProxyHeader(f"a PROXY protocol header with version and command {version:#04x}, which does not exist")
    if length > MAX_BYTES:
        raise BadProxyHeader(f"a PROXY protocol header of {length} bytes, more than the {MAX_BYTES} allowed")
    return int(length)


def client_address_in(fixed: bytes, rest: bytes) -> str | None:
    """Return the client's host:port from a header.

    Return None if the load balancer connects on its own behalf, or if the client does not use TCP. Raises
    BadProxyHeader.
    """
    _, version, family, _ = _FIXED.unpack(fixed)
    if version & 0x0F == _LOCAL or family not in (_TCP_4, _TCP_6):
        return None
    layout = _ADDRESSES_4 if family == _TCP_4 else _ADDRESSES_6
    if len(rest) < layout.size:
        raise BadProxyHeader(f"a PROXY protocol header with {len(rest)} bytes for addresses of {layout.size}")
    source, _, port, _ = layout.unpack_from(rest)
    return f"{without_ipv4_mapping(ip_address(source))}:{port}"
