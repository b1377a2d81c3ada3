"""`host:port` as people write it, IPv6 in brackets."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

_MAX_PORT = 65535
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
        """Whether listening here means every address of the machine."""
        return self.host in WILDCARDS


def parse_host_port(text: Any) -> HostPort:
    """Read `host:port` or `[ipv6]:port`. Raises ValueError with what is wrong."""
    if isinstance(text, HostPort):
        return text
    if not isinstance(text, str):
        raise ValueError(f"expected host:port in quotes, found {text!r}")
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > _MAX_PORT:
        raise ValueError(f"expected host:port with a port of 0 to {_MAX_PORT}, found {text!r}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"an IPv6 address needs brackets, as [::1]:9092; found {text!r}")
    return HostPort(host, int(port))


Address = Annotated[HostPort, BeforeValidator(parse_host_port), PlainSerializer(str)]
