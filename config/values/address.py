"""Parses addresses: `host:port` with IPv6 in brackets, and host names that are advertised to clients."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from sluicegate.config.values import json_schema_kinds as schema
from sluicegate.config.values.quantity import format_quantity

_MAX_PORT = 65535
_MAX_HOST = 255
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_+.-]*)://")
WILDCARDS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  # compared with, never bound by default


@dataclass(frozen=True, slots=True)
class HostPort:
    """A TCP address; port 0 asks the system for a free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_wildcard(self) -> bool:
        """Return whether listening on this address means listening on all of the machine's addresses."""
        return self.host in WILDCARDS


def reachable_address(host: str, port: int) -> HostPort | None:
    """Return the address that a broker advertises. Return None if no listener or resolver can use its name.

    Brokers accept only ASCII for a listener's host (Kafka's EndPoint), and names have labels of 1 to 63 characters.
    """
    if not 0 < port <= _MAX_PORT or not 0 < len(host) <= _MAX_HOST:
        return None
    if not host.isascii() or not host.isprintable():
        return None
    try:
        host.encode("idna")  # raises an error for invalid labels
    except UnicodeError:
        return None
    return HostPort(host, port)


def parse_host_port(text: Any, tls_key: str = "upstream.tls or listen.tls") -> HostPort:
    """Parse `host:port` or `[ipv6]:port`. Raises ValueError with the reason.

    `tls_key` is the key that enables TLS, for error messages.
    """
    if isinstance(text, HostPort):
        return text
    if not isinstance(text, str):
        raise ValueError(f'expected host:port in quotes, such as "127.0.0.1:9092"; found {format_quantity(text)}')
    text = text.strip()
    if "@" in text:  # the part before it may be a secret
        raise ValueError("expected host:port alone, without a user or password; logins are configured in upstream.sasl")
    scheme = _SCHEME.match(text)
    if scheme is not None:
        raise ValueError(f"leave out {scheme[0]}; for TLS use {tls_key}")
    if "," in text:
        each = ", ".join(f'"{part.strip()}"' for part in text.split(",") if part.strip())
        raise ValueError(f"one address for each item: [{each[:200]}]")
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or len(port) > 5 or int(port) > _MAX_PORT:
        raise ValueError(f"expected host:port with a port of 0 to {_MAX_PORT}, found {format_quantity(text)}")
    return HostPort(_host_of(host, text), int(port))


def _host_of(host: str, text: str) -> str:
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1]
    if ":" in host:
        raise ValueError(f"an IPv6 address needs brackets, such as [::1]:9092; found {format_quantity(text)}")
    if any(char.isspace() or not char.isprintable() or char in "/\\\"'" for char in host):
        raise ValueError(f"expected a host name without blanks and slashes; found {format_quantity(text)}")
    return host


def parse_addresses(value: Any) -> Any:
    """Return a list of addresses. One comma-separated string is also accepted."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def require_address(addresses: tuple[HostPort, ...]) -> tuple[HostPort, ...]:
    """Raise ValueError if there is no address."""
    if not addresses:
        raise ValueError('expected at least one address, such as ["127.0.0.1:9092"]')
    return addresses


def _can_be_connected_to(address: HostPort) -> HostPort:
    if not address.host:
        raise ValueError(f"a host is missing before :{address.port}")
    if address.port == 0:
        raise ValueError(f"clients cannot connect to port 0; found {str(address)!r}")
    return address


def _can_be_listened_at(address: HostPort) -> HostPort:
    if address.host:
        check_host(address.host)
    return address


def check_host(host: str) -> str:
    """Check a host name or IP address without a port. Raises ValueError."""
    scheme = _SCHEME.match(host)
    bare, colon, port = host.rpartition(":")
    if scheme is not None:
        raise ValueError(f"expected a host alone: leave out {scheme[0]}")
    if colon and port.isdigit() and (":" not in bare or bare.endswith("]")):
        raise ValueError(f"expected a host alone, without :{port[:10]}; the port is that of the listener")
    try:
        possible = 0 < len(host) <= _MAX_HOST and host.isprintable() and len(host.encode("idna")) > 0
    except UnicodeError:
        possible = False
    if not possible or any(char in " /\\@,\"'" for char in host):
        raise ValueError(f"expected a host's name or address; found {format_quantity(host)}")
    return host


def check_advertised_host(host: str) -> str:
    """Check a host that is advertised to clients. Raises ValueError."""
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if host in WILDCARDS:
        raise ValueError(f"clients cannot connect to {host!r}: name a host that they can reach this proxy by")
    return check_host(host)


def _reader(tls_key: str) -> Callable[[Any], HostPort]:
    return lambda text: parse_host_port(text, tls_key)


BrokerAddress = Annotated[
    HostPort,
    BeforeValidator(_reader("upstream.tls")),
    AfterValidator(_can_be_connected_to),
    schema.schema_note(schema.ADDRESS),
]
ListenAddress = Annotated[
    HostPort,
    BeforeValidator(_reader("listen.tls")),
    AfterValidator(_can_be_listened_at),
    schema.schema_note(schema.ADDRESS),
]
AdvertisedHost = Annotated[str, AfterValidator(check_advertised_host)]
