"""Detects that the configured cluster is this proxy itself. Each request would then cause another one.

There are two signs. First, the proxy's first request has a correlation id that only this proxy uses. This works even
through a load balancer. Second, an accepted connection may have the same two addresses as a connection that the proxy
has opened. One matching address is not enough, because the system reuses ports for other destinations.
"""

import secrets
from struct import Struct

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import UpstreamIsThisProxy

_HEAD = Struct(">hhi")
_GREETING_VERSION = 0
_MAPPED = "::ffff:"

Ends = tuple[str, str]
"""The source and the destination of a connection, as host:port."""


def new_mark() -> int:
    """Create a correlation id for this proxy's own requests. All workers share it. Clients' ids start with 0 or 1."""
    return secrets.randbits(30) | 1 << 30


class LoopDetection:
    """Detects this process's own connections and requests. `listener` is the listener of the last detected loop."""

    def __init__(self, mark: int) -> None:
        self.listener: str | None = None
        self._greeting = _HEAD.pack(ApiKey.API_VERSIONS, _GREETING_VERSION, mark)
        self._made: set[Ends] = set()

    def made(self, ends: Ends) -> None:
        """Record a connection to a broker that was opened."""
        self._made.add(_plain(ends))

    def ended(self, ends: Ends) -> None:
        """Forget a connection to a broker that has closed."""
        self._made.discard(_plain(ends))

    def check(self, ends: Ends, head: bytes, listener: str) -> None:
        """Check the first request on an accepted connection. The client's address comes first in `ends`.

        Raises UpstreamIsThisProxy if the proxy itself opened the connection.
        """
        if head == self._greeting or _plain(ends) in self._made:
            self.listener = listener
            raise UpstreamIsThisProxy(
                f"upstream leads back to this proxy's own listener ({listener}): use the brokers' own addresses in "
                f"upstream.bootstrap, in upstream.brokers and in the brokers' advertised.listeners"
            )


def _plain(ends: Ends) -> Ends:
    """Return IPv4 addresses without the IPv6 prefix of dual-stack sockets."""
    return ends[0].replace(_MAPPED, ""), ends[1].replace(_MAPPED, "")
