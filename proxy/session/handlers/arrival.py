"""Starts a session: admits the client, and connects to a broker when the first request arrives."""

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sluicegate.config.values.address import HostPort
from sluicegate.protocol.errors import MalformedMessage
from sluicegate.protocol.framing import SIZE_BYTES
from sluicegate.protocol.headers import parse_request_header
from sluicegate.proxy.session.client.claimed_principal import KIND, principal_of_certificate
from sluicegate.proxy.session.client.client_text import client_text
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.handlers.dependencies import SessionDependencies
from sluicegate.proxy.session.limit_names import ALLOWED_NAMES, MAPPING_RULES
from sluicegate.proxy.session.outlets import Timer, UpstreamUnreachable
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.reports import SessionTrace

# A client id has at most 32,767 bytes.
_MOST_HEADER_BYTES = 33_000


@dataclass(frozen=True, slots=True)
class Route:
    """The route to a broker.

    `label` names the broker for people. The function returns the addresses to try for a client id, in order.
    """

    label: str
    addresses_for: Callable[[str | None], Sequence[HostPort]]


class RotatingAddresses:
    """Equivalent addresses in rotation.

    Each client starts with the next address, so that an unresponsive broker that accepts connections does not get all
    clients.
    """

    def __init__(self, addresses: Sequence[HostPort]) -> None:
        self._addresses = deque(addresses)

    def next_order(self) -> tuple[HostPort, ...]:
        """Return the addresses in the order in which to try them."""
        order = tuple(self._addresses)
        self._addresses.rotate(-1)
        return order


NO_ROUTE = Route("?", lambda _: ())

RouteFor = Callable[[str | None], Route]
"""Returns the route for the host name that a TLS client requested from a listener."""


class SessionOpening:
    """Starts one session and cleans up when it ends.

    `route` leads to the client's broker. `has_begun` is true once the client has sent a request, which needs a broker.
    """

    def __init__(
        self,
        dependencies: SessionDependencies,
        identity: ClientIdentity,
        client: Connection,
        broker: Connection,
        fail: Callable[[BaseException], None],
        trace: SessionTrace | None,
    ) -> None:
        """`fail` ends the session after an internal error."""
        self._dependencies = dependencies
        self._identity = identity
        self._client = client
        self._broker = broker
        self._fail = fail
        self._trace = trace
        self._is_in = False
        self._is_over = False
        self._head = b""
        self._dialling: Timer | None = None
        self._ends_upstream: tuple[str, str] | None = None
        self.route = NO_ROUTE
        self.has_begun = False

    def admit(self, proxy_header_peer: str | None, route_for: RouteFor) -> bool:
        """Admit the client, and return whether it was admitted.

        `proxy_header_peer` is the client's address from a PROXY header.
        """
        peer_info = self._client.peer_info
        peer = self._identity.peer = peer_info.peer if proxy_header_peer is None else proxy_header_peer
        address = peer.rpartition(":")[0]
        principal = self._principal_of(peer, peer_info.principal)
        if not self._is_named(peer, peer_info.names) or (principal is None and peer_info.principal is not None):
            return False
        beyond = self._dependencies.admission.enter(address)
        if beyond is not None:
            limit, most = beyond
            self._dependencies.log.connection_limit_reached(peer, limit, most)
            self._dependencies.counts.connections_rejected[limit] += 1
            return False
        self._is_in = True
        self._client.address = self._broker.address = address
        if principal is not None:
            self._identity.name_by(principal_of_certificate(principal))
        self.route = route_for(peer_info.server_name)
        return True

    def _principal_of(self, peer: str, subject: str | None) -> str | None:
        """Return the principal of a client's certificate according to the mapping rules, if any are configured.

        The result is None without a certificate, or if no rule applies. A broker would reject such a client.
        """
        mapping = self._dependencies.principal_mapping
        if mapping is None or subject is None:
            return subject
        name = mapping.name_of(subject.removeprefix(KIND))
        if name is not None:
            return KIND + name
        shown = client_text(subject)
        reason = f"no rule of {MAPPING_RULES} applies to the certificate {shown}: add DEFAULT as the last rule"
        self._dependencies.log.connection_rejected(peer, MAPPING_RULES, reason)
        self._dependencies.counts.connections_rejected[MAPPING_RULES] += 1
        return None

    def _is_named(self, peer: str, names: tuple[str, ...]) -> bool:
        """Return whether the client's certificate has an allowed name. Return True if names are not checked."""
        allowed = self._dependencies.allowed_names
        if allowed is None or allowed.match_any(names):
            return True
        shown = client_text(", ".join(names)) or "nobody"
        reason = (
            f"the certificate has the names {shown}, and none is in {ALLOWED_NAMES}: add a name if the client "
            f"may connect"
        )
        self._dependencies.log.connection_rejected(peer, ALLOWED_NAMES, reason)
        self._dependencies.counts.connections_rejected[ALLOWED_NAMES] += 1
        return False

    def connect_broker(self, head: bytes) -> None:
        """Connect to a broker for the first request, which starts with `head`.

        A client that sends nothing causes no broker connection. Raises UpstreamIsThisProxy.
        """
        ends = (self._identity.peer, self._client.peer_info.local_address)
        self._dependencies.loop_detection.check(ends, head, self.route.label)
        self._client.pause(PauseReason.CONNECTING)
        self.has_begun = True
        self._head = head
        self._dependencies.connecting(self._dial, self._client.address)

    def _dial(self) -> None:
        if not self._is_over:
            addresses = self.route.addresses_for(self._client_id())
            self._dialling = self._dependencies.dial(addresses, self._broker, self._on_connect_failed)

    def _client_id(self) -> str | None:
        """Return the client id in the first request, or None if it has not arrived completely."""
        begun = self._client.begun
        waiting = (b"" if begun is None else bytes(begun[:_MOST_HEADER_BYTES])) + self._client.unread
        # the request was gathered, is forwarded in pieces, or has arrived only in part
        for frame in (waiting, waiting[SIZE_BYTES:], self._head + waiting):
            if frame.startswith(self._head):
                with suppress(MalformedMessage):
                    client_id = parse_request_header(frame, 1).client_id
                    return None if client_id is None else client_text(client_id)
        return None

    def _on_connect_failed(self, error: Exception) -> None:
        if self._is_over:
            return
        if not isinstance(error, UpstreamUnreachable):  # after an internal error, the client must not wait forever
            self._fail(error)
            return
        self._dependencies.log.upstream_unreachable(self.route.label, str(error))
        self._dependencies.counts.upstream_failures += 1
        if self._trace is not None:
            self._trace.session_ending(f"proxy: broker unreachable: {error}")
        self._client.abort()

    def on_broker_connected(self) -> None:
        """Resume reading from the client."""
        peer_info = self._broker.peer_info
        self._ends_upstream = (peer_info.local_address, peer_info.peer)
        self._dependencies.loop_detection.made(self._ends_upstream)
        self._client.resume(PauseReason.CONNECTING)

    def on_broker_lost(self) -> None:
        """Forget the broker connection."""
        if self._ends_upstream is not None:
            self._dependencies.loop_detection.ended(self._ends_upstream)

    def end(self) -> None:
        """Clean up after both connections have closed."""
        self._is_over = True
        if self._dialling is not None:
            self._dialling.cancel()
            self._dialling = None
        if self._is_in:
            self._is_in = False
            self._dependencies.admission.leave(self._client.address)
