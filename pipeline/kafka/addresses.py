"""Parses addresses of brokers, as in `kafka.bootstrap.servers` and `--bootstrap`.

The proxy's parser (`sluicegate.config.values.address`) needs pydantic, which Spark's workers should not import.
"""

from sluicegate.pipeline.kafka.connection import Address

_LARGEST_PORT = 65_535
_LONGEST_SHOWN = 100


def parse_addresses(text: str) -> tuple[Address, ...]:
    """Parse one or several broker addresses, `host:port` or `[ipv6]:port`, separated by commas. Raises ValueError."""
    return tuple(_address(part.strip()) for part in text.split(",") if part.strip())


def _address(text: str) -> Address:
    if "@" in text:  # the part before @ may be a secret
        raise ValueError("expected host:port without a user or password; a login has its own settings")
    scheme, separator, _ = text.partition("://")
    if separator:
        raise ValueError(f"omit {scheme[:_LONGEST_SHOWN]}://; security.protocol selects TLS and SASL")
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit():
        raise ValueError(f"expected host:port, found {text[:_LONGEST_SHOWN]!r}")
    if len(port) > len(str(_LARGEST_PORT)) or not 0 < int(port) <= _LARGEST_PORT:
        raise ValueError(f"expected a port of 1 to {_LARGEST_PORT}, found {text[:_LONGEST_SHOWN]!r}")
    if host.startswith("[") and host.endswith("]"):
        return host[1:-1], int(port)
    if ":" in host or any(char.isspace() or not char.isprintable() or char in "/\\\"'[]" for char in host):
        raise ValueError(f"expected host:port, with brackets around IPv6 ([::1]:9092), found {text[:_LONGEST_SHOWN]!r}")
    return host, int(port)
