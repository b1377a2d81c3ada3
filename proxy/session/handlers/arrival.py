"""The start of a session: admits the client, and connects a broker with its first request."""

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
    """A broker's `label` for people, and the function that returns the addresses to try for a client id, in order."""

    label: str
    addresses_for: Callable[[str | None], Sequence[HostPort]]


class RotatingAddresses:
    """Equivalent addresses. Each client starts with the next one, so a broker that accepts connections without
    responding does not get all of them.
    """

    def __init__(self, addresses: Sequence[HostPort]) -> None:
        self._addresses = deque(addresses)

    def next_order(self) -> tuple[HostPort, ...]:
        """Return the addresses in the order to try them."""
        order = tuple(self._addresses)
        self._addresses.rotate(-1)
        return order


NO_ROUTE = Route("?", lambda _: ())

RouteFor = Callable[[str | None], Route]
"""Returns the route of a listener for the host name that a TLS client asked for."""


class SessionOpening:
    """Starts one session and cleans up at its end. `route`: the client's broker; `has_begun`: the client has sent a
    request, so a broker is needed.
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
        """`fail` ends the session because of an internal error."""
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
        """Return whether the client is admitted. `proxy_header_peer` is its address from a PROXY header."""
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
        """Return the principal of a client's certificate by the mapping rules, if there are any. None without a
        certificate, or if no rule applies: a broker rejects such a client.
        """
        mapping = self._dependencies.principal_mapping
        if mapping is None or subject is None:
            return subject
        name = mapping.name_of(subject.removeprefix(KIND))
        if name is not None:
            return KIND + name
        shown = client_text(subject)
        reason = f"no rule of {MAPPING_RULES} applies to its certificate, {shown}: add DEFAULT as the last rule"
        self._dependencies.log.connection_rejected(peer, MAPPING_RULES, reason)
        self._dependencies.counts.connections_rejected[MAPPING_RULES] += 1
        return None

    def _is_named(self, peer: str, names: tuple[str, ...]) -> bool:
        """Return whether the client's certificate has an allowed name, if names are checked."""
        allowed = self._dependencies.allowed_names
        if allowed is None or allowed.match_any(names):
            return True
        shown = client_text(", ".join(names)) or "nobody"
        reason = f"its certificate names {shown}, whom {ALLOWED_NAMES} does not have: add a name if it may connect"
        self._dependencies.log.connection_rejected(peer, ALLOWED_NAMES, reason)
        self._dependencies.counts.connections_rejected[ALLOWED_NAMES] += 1
        return False

    def connect_broker(self, head: bytes) -> None:
        """Connect to a broker for the first request, which starts with `head`. Idle clients cause no broker
        connections. Raises UpstreamIsThisProxy.
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
        """Return the client id in the first request, which waits for the broker; None if it has not arrived yet."""
        begun = self._client.begun
        waiting = (b"" if begun is None else bytes(begun[:_MOST_HEADER_BYTES])) + self._client.unread
        for frame in (waiting, waiting[SIZE_BYTES:], self._head + waiting):  # gathered, passed on, or begun in parts
            if frame.startswith(self._head):
                with suppress(MalformedMessage):
                    client_id = parse_request_header(frame, 1).client_id
                    return None if client_id is None else client_text(client_id)
        return None

    def _on_connect_failed(self, error: Exception) -> None:
        if self._is_over:
            return
        if not isinstance(error, UpstreamUnreachable):  # an internal error: the client must not wait forever
            self._fail(error)
            return
        self._dependencies.log.upstream_unreachable(self.route.label, str(error))
        self._dependencies.counts.upstream_failures += 1
        if self._trace is not None:
            self._trace.session_ending(f"proxy: broker unreachable: {error}")
        self._client.abort()

    def on_broker_connected(self) -> None:
        """Resume the client."""
        peer_info = self._broker.peer_info
        self._ends_upstream = (peer_info.local_address, peer_info.peer)
        self._dependencies.loop_detection.made(self._ends_upstream)
        self._client.resume(PauseReason.CONNECTING)

    def on_broker_lost(self) -> None:
        """Forget the broker connection."""
        if self._ends_upstream is not None:
            self._dependencies.loop_detection.ended(self._ends_upstream)

    def end(self) -> None:
        """Clean up; both connections are closed."""
        self._is_over = True
        if self._dialling is not None:
            self._dialling.cancel()
            self._dialling = None
        if self._is_in:
            self._is_in = False
            self._dependencies.admission.leave(self._client.address)
