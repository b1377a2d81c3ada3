"""Notices when what is configured as the cluster is this proxy itself: each request would begin the next.

Two signs, neither of which a broker or a client can see: the proxy's own first question carries a correlation id that
only this proxy uses, and a connection whose two ends are those of one that the proxy itself has made is that one. The
first also tells through a load balancer, the second for every connection. One end alone tells nothing: the system gives
the same port to connections that lead elsewhere.
"""

import secrets
from struct import Struct

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import UpstreamLeadsBack

_HEAD = Struct(">hhi")
_GREETING_VERSION = 0
_MAPPED = "::ffff:"

Ends = tuple[str, str]
"""Where a connection leaves from and where it leads, each as host:port."""


def new_mark() -> int:
    """A correlation id for this proxy's questions; all its workers use the same. Large: clients begin with 0 or 1."""
    return secrets.randbits(30) | 1 << 30


class LoopDetection:
    """What of this process's own has come back to it. `listener`: at which listener the last one arrived."""

    def __init__(self, mark: int) -> None:
        self.listener: str | None = None
        self._greeting = _HEAD.pack(ApiKey.API_VERSIONS, _GREETING_VERSION, mark)
        self._made: set[Ends] = set()

    def made(self, ends: Ends) -> None:
        """A connection to a broker was made: from where, and to where."""
        self._made.add(_plain(ends))

    def ended(self, ends: Ends) -> None:
        """It is over."""
        self._made.discard(_plain(ends))

    def look_at(self, ends: Ends, head: bytes, listener: str) -> None:
        """Look at the first request of a connection that was accepted, as its other side sees it: from where to where.

        Raises UpstreamLeadsBack when it is this proxy's own.
        """
        if head == self._greeting or _plain(ends) in self._made:
            self.listener = listener
            raise UpstreamLeadsBack(
                f"upstream leads back to this proxy's own listener ({listener}): name brokers in upstream.bootstrap "
                "and upstream.brokers, and let brokers' advertised.listeners name themselves"
            )


def _plain(ends: Ends) -> Ends:
    """IPv4 addresses as such, however a socket for both families shows them."""
    return ends[0].replace(_MAPPED, ""), ends[1].replace(_MAPPED, "")
