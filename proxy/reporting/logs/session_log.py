"""The log lines of connections; a peer that fails again and again fills one line a minute.

Whatever clients and brokers say is cut to 256 characters.
"""

import time
from typing import Any

import structlog

from sluicegate.protocol.errors import FrameSizeError, ResponseOutOfOrder, SenderError
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.logs.aggregation import Aggregator, Wider
from sluicegate.proxy.reporting.logs.exception_text import fault_text, place_of
from sluicegate.proxy.session.client.identity import ClientIdentity, LoginFailure

_INTERVAL_SECONDS = 60
_HTTP_STARTS = (b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"OPTI")


class SessionLog:
    """Says what happened to a connection, to whom, and what to do."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("sluicegate.session")
        self._lines = Aggregator(_INTERVAL_SECONDS, self._emit, _wider)
        self._faults = Aggregator(_INTERVAL_SECONDS, self._emit_fault, _wider)

    def bad_client(self, identity: ClientIdentity, listener: str, error: SenderError) -> None:
        """A client broke the protocol; its connection is being closed."""
        host = _host(identity.peer)
        reason = _recognised(error) or str(error)
        details = {"peer": identity.peer, "client_id": identity.client_id, "listener": listener, "reason": reason}
        self._note("client connection closed", (host, reason), details)

    def bad_broker(self, broker: str, address: str, error: SenderError) -> None:
        """A broker broke the protocol, or something that is no broker answered; `address` is where it is."""
        details: dict[str, Any] = {"broker": broker, "address": address, "reason": str(error)}
        if isinstance(error, ResponseOutOfOrder):
            details |= {
                "expected": "no response" if error.expected is None else error.expected,
                "received": error.received,
                "advice": "the broker, or what is between it and the proxy, mixes up responses: Kafka sends those of a "
                "connection in the order of its requests. Look at its log, and ask its vendor",
            }
        self._note("upstream connection closed", (broker, str(error)), details)

    def login_rejected(self, identity: ClientIdentity, failure: LoginFailure) -> None:
        """The broker did not let a client in; it says so to the client in its own words."""
        host = _host(identity.peer)
        details = {
            "peer": identity.peer,
            "client_id": identity.client_id,
            "principal": failure.principal,
            "mechanism": failure.mechanism,
            "reason": failure.reason,
        }
        self._note("login rejected by the broker", (host, str(failure.principal)), details)

    def unverified(self, identity: ClientIdentity) -> None:
        """A client has logged in with OAUTHBEARER, policies name principals, and no claim is configured."""
        details = {
            "peer": identity.peer,
            "client_id": identity.client_id,
            "principal": identity.principal,
            "reason": "the proxy does not know which claim of an OAUTHBEARER token the brokers take the principal "
            "from: no exemption matches this client, and no other policy that names a principal",
            "advice": "set listen.sasl.oauthbearer.sub.claim.name to the value of sasl.oauthbearer.sub.claim.name on "
            "the brokers (sub if it is not set there)",
        }
        self._note("principal is unverified", (_host(identity.peer), str(identity.principal)), details)

    def handshake_failed(self, peer: str, listener: str, reason: str) -> None:
        """A client got no TLS connection."""
        host = _host(peer)
        details = {"peer": peer, "listener": listener, "reason": reason}
        self._note("client's TLS handshake failed", (host, reason), details)

    def no_proxy_header(self, peer: str, listener: str, reason: str) -> None:
        """A connection of which no load balancer said whose it is; it was closed."""
        details = {"peer": peer, "listener": listener, "limit": "listen.proxy_protocol", "reason": reason}
        self._note("connection rejected", (_host(peer), reason), details)

    def cannot_accept(self, listener: str, reason: str) -> None:
        """A connection that the system would not hand over, as when no more files can be opened."""
        self._note("cannot accept connections", (listener, reason), {"listener": listener, "reason": reason})

    def upstream_unreachable(self, broker: str, reason: str) -> None:
        """No upstream address took the connection; the client was disconnected and will try again."""
        self._note("upstream unreachable", (broker,), {"broker": broker, "reason": reason})

    def upstream_silent(self, reason: str) -> None:
        """The proxy's own look at the cluster found no broker; it looks again every few seconds."""
        advice = (
            "are the brokers up, and is upstream.bootstrap where clients reach them? sluicegate doctor looks closer"
        )
        self._note("no upstream broker answers", (reason,), {"reason": reason, "advice": advice})

    def own_login_rejected(self, reason: str) -> None:
        """`upstream.sasl` is not accepted; clients, who log in for themselves, are served all the same."""
        advice = "mend upstream.sasl; until then brokers and topics' settings are not asked for"
        self._note("the proxy's own login is rejected", (reason,), {"reason": reason, "advice": advice})

    def rejected_connection(self, peer: str, limit: str, value: int) -> None:
        """A connection was not taken: `limit` is the key of the limit that is reached, `value` what it allows."""
        details = {"peer": peer, "limit": limit, "reason": f"there are {value} already; see {limit}"}
        self._note("connection rejected", (_host(peer), limit), details)

    def turned_away(self, peer: str, limit: str, reason: str) -> None:
        """A connection was not taken: `limit` is the key that says who may connect, or how often."""
        self._note("connection rejected", (_host(peer), limit), {"peer": peer, "limit": limit, "reason": reason})

    def throttled(self, identity: ClientIdentity, quota: str, wait_ms: int) -> None:
        """A client has sent more than its quota allows, and was told to wait."""
        details = {
            "peer": identity.peer,
            "client_id": identity.client_id,
            "principal": identity.principal,
            "quota": quota,
            "wait_ms": wait_ms,
            "advice": "it sends more than its quota allows: raise that, or have it send less",
        }
        self._note("client throttled", (quota, str(identity.principal), str(identity.client_id)), details)

    def delayed_connection(self, peer: str, limit: str, reason: str) -> None:
        """A connection has to wait before it is taken: `limit` is the key that says how many may come."""
        self._note("connection delayed", (limit,), {"peer": peer, "limit": limit, "reason": reason})

    def has_to_wait(self, peer: str, limit: str, reason: str) -> None:
        """A client is not read for a while: `limit` is the key that says how much there may be of all clients."""
        self._note("client has to wait", (limit,), {"peer": peer, "limit": limit, "reason": reason})

    def cut_off(self, identity: ClientIdentity, listener: str, limit: str, text: str) -> None:
        """A connection was ended by a limit or a deadline of ours: its key, and what happened."""
        details = {
            "peer": identity.peer,
            "client_id": identity.client_id,
            "listener": listener,
            "limit": limit,
            "reason": text,
        }
        self._note("connection cut off", (_host(identity.peer), limit), details)

    def our_fault(self, identity: ClientIdentity, error: BaseException) -> None:
        """Our own fault: an exception that nothing in a session expected; the connection was closed."""
        self._fault("a fault of sluicegate's own, connection closed: please report it", identity, error)

    def goes_unvalidated(self, identity: ClientIdentity, error: BaseException) -> None:
        """The same over one request, which went on as it came (`on_internal_error: forward`)."""
        self._fault("a fault of sluicegate's own, request forwarded unvalidated: please report it", identity, error)

    def validated_anew(self, peer: str, error: Exception) -> None:
        """The same in a fast path, over a request that the slow path validates instead."""
        event = "a fault of sluicegate's own, request validated anew: please report it"
        self._fault(event, ClientIdentity(peer), error)

    def not_told(self, identity: ClientIdentity, error: BaseException) -> None:
        """The same over what is counted and told of a request; what becomes of that is not changed."""
        self._fault("a fault of sluicegate's own, a validation is not told: please report it", identity, error)

    def sweep(self) -> None:
        """Write what has gathered."""
        now = time.monotonic()
        self._lines.sweep(now)
        self._faults.sweep(now)

    def flush(self) -> None:
        """Write all that has gathered."""
        self._lines.flush()
        self._faults.flush()

    def _note(self, event: str, key: tuple[str, ...], details: dict[str, Any]) -> None:
        self._lines.note((event, *map(cut, key)), 0, time.monotonic(), _line, event, details)

    def _fault(self, event: str, identity: ClientIdentity, error: BaseException) -> None:
        key = (event, type(error).__name__, place_of(error))
        self._faults.note(key, 0, time.monotonic(), _fault_line, event, identity, error)

    def _emit(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.warning(**details, **({"times": times} if times > 1 else {}))

    def _emit_fault(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.error(**details, **({"times": times} if times > 1 else {}))


def _line(event: str, details: dict[str, Any]) -> dict[str, Any]:
    shown = {name: cut(value) if isinstance(value, str) else value for name, value in details.items()}
    return {"event": event, **{name: value for name, value in shown.items() if value is not None}}


def _fault_line(event: str, identity: ClientIdentity, error: BaseException) -> dict[str, Any]:
    line = _line(event, {"peer": identity.peer, "client_id": identity.client_id})
    return line | {"exception": fault_text(error)}


def _wider(key: tuple[str, ...]) -> Wider:
    """All of one event: what happened stays, to whom and why differ."""
    return Wider(key[0], frozenset({"peer", "client_id", "principal", "reason", "broker", "address"}))


def _host(peer: str) -> str:
    return peer.rpartition(":")[0]


def _recognised(error: SenderError) -> str | None:
    """What speaks here instead of Kafka, when its first bytes tell."""
    if not isinstance(error, FrameSizeError):
        return None
    if error.head[:2] == b"\x16\x03":
        return "a TLS handshake on a plain port: set security.protocol=PLAINTEXT on the client, or use a TLS listener"
    if error.head[:4] in _HTTP_STARTS:
        return "an HTTP request on a Kafka port"
    return None
