"""How a session begins: a client is let in, and a broker is called when it asks for something."""

from collections.abc import Callable
from functools import partial

from sluicegate.proxy.session.allowed_names import ALLOWED_NAMES
from sluicegate.proxy.session.client_text import client_text
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.hold import Hold
from sluicegate.proxy.session.identity import ClientIdentity
from sluicegate.proxy.session.needs import SessionNeeds
from sluicegate.proxy.session.outlets import Timer
from sluicegate.proxy.session.route import NOWHERE, RouteFor


class Arrival:
    """The beginning of one session, undone at its end. `route`: where the client is led; `has_begun`: it has asked for
    something, so that a broker is needed.
    """

    def __init__(self, needs: SessionNeeds, identity: ClientIdentity, client: Connection, broker: Connection) -> None:
        self._needs = needs
        self._identity = identity
        self._client = client
        self._broker = broker
        self._is_in = False
        self._is_over = False
        self._dialling: Timer | None = None
        self._ends_upstream: tuple[str, str] | None = None
        self.route = NOWHERE
        self.has_begun = False

    def let_in(self, told_peer: str | None, route_for: RouteFor) -> bool:
        """Whether the client may stay, whose address is `told_peer` where a load balancer has told it."""
        introduced = self._client.introduced
        peer = self._identity.peer = introduced.peer if told_peer is None else told_peer
        address = peer.rpartition(":")[0]
        if not self._is_named(peer, introduced.names):
            return False
        beyond = self._needs.admission.enter(address)
        if beyond is not None:
            limit, most = beyond
            self._needs.log.refused_connection(peer, limit, most)
            self._needs.counts.connections_refused[limit] += 1
            return False
        self._is_in = True
        self._client.address = self._broker.address = address
        if introduced.principal is not None:
            self._identity.principal = client_text(introduced.principal)
        self.route = route_for(introduced.asked_name)
        return True

    def _is_named(self, peer: str, names: tuple[str, ...]) -> bool:
        """Whether its certificate, where that is asked for, names somebody who may connect."""
        allowed = self._needs.allowed_names
        if allowed is None or allowed.hold_one_of(names):
            return True
        shown = client_text(", ".join(names)) or "nobody"
        reason = f"its certificate names {shown}, whom {ALLOWED_NAMES} does not have: add a name if it may connect"
        self._needs.log.turned_away(peer, ALLOWED_NAMES, reason)
        self._needs.counts.connections_refused[ALLOWED_NAMES] += 1
        return False

    def call_broker(self, head: bytes, failed: Callable[[Exception], None]) -> None:
        """A first request has begun with `head`. Raises UpstreamLeadsBack."""
        ends = (self._identity.peer, self._client.introduced.own_end)
        self._needs.leading_back.look_at(ends, head, self.route.label)
        self._client.hold(Hold.CONNECTING)
        self.has_begun = True
        self._needs.connecting(partial(self._dial, failed), self._client.address)

    def _dial(self, failed: Callable[[Exception], None]) -> None:
        if not self._is_over:
            self._dialling = self._needs.dial(self.route.addresses, self._broker, failed)

    def broker_came(self) -> None:
        """It answers."""
        introduced = self._broker.introduced
        self._ends_upstream = (introduced.own_end, introduced.peer)
        self._needs.leading_back.made(self._ends_upstream)
        self._client.release(Hold.CONNECTING)

    def broker_went(self) -> None:
        """It is gone."""
        if self._ends_upstream is not None:
            self._needs.leading_back.ended(self._ends_upstream)

    def end(self) -> None:
        """Both have gone."""
        self._is_over = True
        if self._dialling is not None:
            self._dialling.cancel()
        if self._is_in:
            self._is_in = False
            self._needs.admission.leave(self._client.address)
