"""PROXY protocol version 2 (HAProxy's specification of 2020): a load balancer in front says who the client really is.

A header of 16 bytes (signature, version and command, family, length), then addresses, then type-length-values, which
are not read. Version 1, a line of text, is not taken.
"""

from dataclasses import dataclass
from ipaddress import ip_address
from struct import Struct

from sluicegate.config.listen import Listen
from sluicegate.proxy.network.networks import Networks, networks_of, plain

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_FIXED = Struct(">12sBBH")
FIXED_BYTES = _FIXED.size
MAX_BYTES = 4096
"""Of addresses and type-length-values together; those that are known stay far below."""

_VERSION_1 = b"PROXY "
_VERSION_2 = 0x20
_LOCAL, _PROXY = 0, 1
_TCP_4, _TCP_6 = 0x11, 0x21
_ADDRESSES_4 = Struct(">4s4sHH")
_ADDRESSES_6 = Struct(">16s16sHH")


class BadProxyHeader(Exception):
    """What a trusted address sent is no header of version 2; the text says what it is."""


@dataclass(frozen=True, slots=True)
class ProxyProtocol:
    """Who has to begin a connection with a header (`is_required`: everybody), and who may."""

    is_required: bool
    trusted: Networks

    def trusts(self, peer: str) -> bool:
        """Whether an address may say for whom it connects."""
        return self.trusted.hold(peer)


def proxy_protocol_of(listen: Listen) -> ProxyProtocol | None:
    """As it is configured; None: nobody sends headers."""
    if listen.proxy_protocol is None:
        return None
    return ProxyProtocol(listen.proxy_protocol == "required", networks_of(listen.proxy_protocol_from))


def may_begin(head: bytes) -> bool:
    """Whether bytes that came first are a header's, as far as they go."""
    return SIGNATURE.startswith(head[: len(SIGNATURE)])


def bytes_behind(fixed: bytes) -> int:
    """How many bytes follow the first 16. Raises BadProxyHeader."""
    signature, version, _, length = _FIXED.unpack(fixed)
    if signature != SIGNATURE:
        if fixed.startswith(_VERSION_1):
            raise BadProxyHeader("a PROXY protocol header of version 1: let the load balancer send version 2")
        raise BadProxyHeader("no PROXY protocol header: let the load balancer send one (version 2)")
    if version & 0xF0 != _VERSION_2 or version & 0x0F not in (_LOCAL, _PROXY):
        raise BadProxyHeader(f"a PROXY protocol header with version and command {version:#04x}, which does not exist")
    if length > MAX_BYTES:
        raise BadProxyHeader(f"a PROXY protocol header of {length} bytes, more than the {MAX_BYTES} allowed")
    return int(length)


def client_in(fixed: bytes, behind: bytes) -> str | None:
    """The client's host:port; None where the load balancer speaks for itself, or says nothing of TCP.

    Raises BadProxyHeader.
    """
    _, version, family, _ = _FIXED.unpack(fixed)
    if version & 0x0F == _LOCAL or family not in (_TCP_4, _TCP_6):
        return None
    layout = _ADDRESSES_4 if family == _TCP_4 else _ADDRESSES_6
    if len(behind) < layout.size:
        raise BadProxyHeader(f"a PROXY protocol header with {len(behind)} bytes for addresses of {layout.size}")
    source, _, port, _ = layout.unpack_from(behind)
    return f"{plain(ip_address(source))}:{port}"
