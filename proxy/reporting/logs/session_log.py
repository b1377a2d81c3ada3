"""Writes log lines about connections, at most one per minute for each peer and reason.

Strings from clients and brokers are truncated to 256 characters.
"""

import time
from typing import Any

import structlog

from sluicegate.protocol.errors import FrameSizeError, ResponseOutOfOrder, SenderError
from sluicegate.proxy.reporting.bounded_text import cut
from sluicegate.proxy.reporting.logs.aggregation import AggregateKind, Aggregator
from sluicegate.proxy.reporting.logs.exception_text import fault_text, place_of
from sluicegate.proxy.session.client.claimed_principal import UnverifiedReason
from sluicegate.proxy.session.client.client_details import ClientDetails
from sluicegate.proxy.session.client.identity import ClientIdentity, LoginFailure

_INTERVAL_SECONDS = 60
_HTTP_STARTS = (b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"OPTI")
_UNREACHABLE = "broker unreachable"
_NO_BROKER = "no broker reachable"
_LOGIN_REJECTED = "broker rejected proxy login"
_BUG_ADVICE = "this is a bug in sluicegate: please report it with this line"


class SessionLog:
    """Logs a connection's events, with its client and advice for the operator."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("sluicegate.session")
        self._lines = Aggregator(_INTERVAL_SECONDS, self._emit, _wider)
        self._faults = Aggregator(_INTERVAL_SECONDS, self._emit_fault, _wider)
        self._changes = Aggregator(_INTERVAL_SECONDS, self._emit_change, _wider)
        self._unsupported = Aggregator(_INTERVAL_SECONDS, self._emit_fault, _wider)

    def bad_client(self, identity: ClientIdentity, listener: str, error: SenderError) -> None:
        """Log that a client violated the protocol and that its connection is closed."""
        host = _host(identity.peer)
        reason = _recognised(error) or str(error)
        details = {
            "client_address": identity.peer,
            "client_id": identity.client_id,
            "listener": listener,
            "reason": reason,
        }
        self._note("client connection closed", (host, reason), details)

    def bad_broker(self, broker: str, address: str, error: SenderError) -> None:
        """Log that the peer at `address`, a broker or another service, violated the protocol."""
        details: dict[str, Any] = {"broker": broker, "address": address, "reason": str(error)}
        if isinstance(error, ResponseOutOfOrder):
            details |= {
                "expected": "no response" if error.expected is None else error.expected,
                "received": error.received,
                "advice": "the broker, or a device between it and the proxy, reorders responses: Kafka sends the "
                "responses of a connection in the order of its requests. Check the broker's log and ask its vendor",
            }
        self._note("upstream connection closed", (broker, str(error)), details)

    def login_rejected(self, identity: ClientIdentity, failure: LoginFailure) -> None:
        """Log that the broker rejected a client's login. The client gets the broker's own response."""
        host = _host(identity.peer)
        details = {
            "client_address": identity.peer,
            "client_id": identity.client_id,
            "principal": failure.principal,
            "mechanism": failure.mechanism,
            "reason": failure.reason,
        }
        self._note("broker rejected client login", (host, str(failure.principal)), details)

    def unverified_principal(self, identity: ClientIdentity, doubt: UnverifiedReason) -> None:
        """Log that a client with an unverified principal logged in although policies name principals."""
        details = {
            "client_address": identity.peer,
            "client_id": identity.client_id,
            "principal": identity.principal,
            "reason": f"{doubt.reason}: exemptions and policies that name a principal do not match this client",
            "advice": doubt.advice,
        }
        self._note("principal unverified", (_host(identity.peer), str(identity.principal)), details)

    def topic_change_refused(self, identity: ClientIdentity, api: str, topic: str | None) -> None:
        """Log a rejected request that would have changed one of the proxies' own topics.

        `api` is the name of the request's API.
        """
        details = {
            "client_address": identity.peer,
            "client_id": identity.client_id,
            "principal": identity.principal,
            "api": api,
            "topic": topic,
            "advice": "this topic stores the proxies' shared state: change it directly on the cluster",
        }
        self._note("change of a state topic refused", (_host(identity.peer), api, str(topic)), details)

    def request_not_supported(self, identity: ClientIdentity, api: str, advice: str) -> None:
        """Log a request that was rejected because the mock cluster does not support its API.

        Some clients do not show the message in the response.
        """
        details = {"client_address": identity.peer, "client_id": identity.client_id, "api": api, "advice": advice}
        event = "request not supported by mock cluster"
        self._unsupported.note((event, _host(identity.peer), api), 0, time.monotonic(), _line, event, details)

    def topic_settings_changed(self, identity: ClientIdentity, api: str, topics: str, keys: str) -> None:
        """Log that a client changed sluicegate's topic settings. `keys` contains their names, without values."""
        details = {**_client_of(identity), "api": api, "topic": topics, "keys": keys}
        key = ("topic settings changed", *map(cut, (_host(identity.peer), api, topics, keys)))
        self._changes.note(key, 0, time.monotonic(), _line, key[0], details)

    def topic_settings_refused(self, identity: ClientIdentity, api: str, topics: str, keys: str, errors: str) -> None:
        """Log topic settings of sluicegate that the proxy did not accept. `errors` contains the errors' names."""
        details = {**_client_of(identity), "api": api, "topic": topics, "keys": keys, "error": errors}
        self._note("topic settings refused", (_host(identity.peer), api, topics, errors), details)

    def topic_settings_not_stored(self, identity: ClientIdentity, api: str, topics: str, reason: str) -> None:
        """Log that sluicegate's topic settings could not be stored after the broker had accepted the request."""
        advice = "the client repeats the request; if this persists, check the state topic with sluicegate doctor"
        details = {**_client_of(identity), "api": api, "topic": topics, "reason": reason, "advice": advice}
        self._note("topic settings not stored", (_host(identity.peer), api, topics, reason), details)

    def handshake_failed(self, peer: str, listener: str, reason: str) -> None:
        """Log a client's failed TLS handshake."""
        host = _host(peer)
        details = {"client_address": peer, "listener": listener, "reason": reason}
        self._note("client TLS handshake failed", (host, reason), details)

    def no_proxy_header(self, peer: str, listener: str, reason: str) -> None:
        """Log a connection that was closed because it had no valid PROXY protocol header."""
        details = {"client_address": peer, "listener": listener, "limit": "listen.proxy_protocol", "reason": reason}
        self._note("connection rejected", (_host(peer), reason), details)

    def accept_failed(self, listener: str, reason: str) -> None:
        """Log a failed accept(2), for example because the limit of open files is reached."""
        self._note("accepting connections failed", (listener, reason), {"listener": listener, "reason": reason})

    def upstream_unreachable(self, broker: str, reason: str) -> None:
        """Log that no upstream address accepted a connection. The client was disconnected and will retry."""
        self._note(_UNREACHABLE, (broker,), {"broker": broker, "reason": reason})

    def no_broker_reachable(self, reason: str) -> None:
        """Log that the proxy's probe of the cluster found no broker. The probe is repeated every few seconds."""
        advice = "check that the brokers are up and that upstream.bootstrap is correct; sluicegate doctor shows more"
        self._note(_NO_BROKER, (reason,), {"reason": reason, "advice": advice})

    def proxy_login_rejected(self, reason: str) -> None:
        """Log that a broker rejected `upstream.sasl`. Clients use their own logins and are still served."""
        advice = "fix upstream.sasl; until then the proxy cannot read brokers or topic settings"
        self._note(_LOGIN_REJECTED, (reason,), {"reason": reason, "advice": advice})

    def upstream_responds(self) -> None:
        """Write the pending lines about an unreachable upstream now, so that none follows the line
        about its recovery.
        """
        self._lines.settle(lambda key: _event_of(key) in (_UNREACHABLE, _NO_BROKER))

    def broker_responds(self, broker: str) -> None:
        """Write the pending lines about one broker now, so that none follows the line about its recovery."""
        self._lines.settle(lambda key: key == (_UNREACHABLE, broker))

    def proxy_login_accepted(self) -> None:
        """Write the pending lines about the rejected login now, so that none follows the line about its recovery."""
        self._lines.settle(lambda key: _event_of(key) == _LOGIN_REJECTED)

    def connection_limit_reached(self, peer: str, limit: str, value: int) -> None:
        """Log a connection that was rejected because a limit is reached.

        `limit` is the limit's configuration key, and `value` its value.
        """
        details = {
            "client_address": peer,
            "limit": limit,
            "reason": f"{value} connections are open already; see {limit}",
        }
        self._note("connection rejected", (_host(peer), limit), details)

    def connection_rejected(self, peer: str, limit: str, reason: str) -> None:
        """Log a connection that was rejected because of its address or the connection rate.

        `limit` is the configuration key.
        """
        self._note(
            "connection rejected", (_host(peer), limit), {"client_address": peer, "limit": limit, "reason": reason}
        )

    def throttled(self, identity: ClientIdentity, quota: str, wait_ms: int) -> None:
        """Log that a client exceeded its quota and is throttled for `wait_ms` milliseconds."""
        details = {
            "client_address": identity.peer,
            "client_id": identity.client_id,
            "principal": identity.principal,
            "quota": quota,
            "wait_ms": wait_ms,
            "advice": "raise the quota, or reduce what the client sends",
        }
        self._note("client throttled", (quota, str(identity.principal), str(identity.client_id)), details)

    def connection_delayed(self, peer: str, limit: str, reason: str) -> None:
        """Log that a connection rate delays new connections. `limit` is its configuration key."""
        self._note("connection delayed", (limit,), {"client_address": peer, "limit": limit, "reason": reason})

    def client_paused(self, peer: str, limit: str, reason: str) -> None:
        """Log that a limit on all clients together pauses this client. `limit` is its configuration key."""
        self._note("client paused", (limit,), {"client_address": peer, "limit": limit, "reason": reason})

    def closed_by_limit(self, identity: ClientIdentity, listener: str, limit: str, text: str) -> None:
        """Log that a limit or timeout closed a connection.

        `limit` is its configuration key, and `text` is the reason.
        """
        details = {
            "client_address": identity.peer,
            "client_id": identity.client_id,
            "listener": listener,
            "limit": limit,
            "reason": text,
        }
        self._note("connection closed by limit", (_host(identity.peer), limit), details)

    def internal_error(self, identity: ClientIdentity, error: BaseException) -> None:
        """Log an unexpected exception in a session, whose connection is closed."""
        self._fault("internal error, connection closed", identity, error)

    def forwarded_unvalidated(self, identity: ClientIdentity, error: BaseException) -> None:
        """Log an exception after which the request was forwarded unchanged (`on_internal_error: forward`)."""
        self._fault("internal error, request forwarded unvalidated", identity, error)

    def revalidated(self, peer: str, error: Exception) -> None:
        """Log an unexpected exception on the fast path. The slow path validates the request instead."""
        event = "internal error, request revalidated by the slow path"
        self._fault(event, ClientIdentity(peer), error)

    def validation_unreported(self, client: ClientDetails, error: BaseException) -> None:
        """Log an unexpected exception in a validation's report. The request itself is not affected."""
        self._fault("internal error, validation not reported", client, error)

    def sweep(self) -> None:
        """Write the lines that are due. Called every few seconds."""
        now = time.monotonic()
        self._lines.sweep(now)
        self._faults.sweep(now)
        self._changes.sweep(now)
        self._unsupported.sweep(now)

    def flush(self) -> None:
        """Write all pending lines before shutdown."""
        self._lines.flush()
        self._faults.flush()
        self._changes.flush()
        self._unsupported.flush()

    def _note(self, event: str, key: tuple[str, ...], details: dict[str, Any]) -> None:
        self._lines.note((event, *map(cut, key)), 0, time.monotonic(), _line, event, details)

    def _fault(self, event: str, identity: ClientIdentity | ClientDetails, error: BaseException) -> None:
        key = (event, type(error).__name__, place_of(error))
        self._faults.note(key, 0, time.monotonic(), _fault_line, event, identity, error)

    def _emit(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.warning(**details, **({"times": times} if times > 1 else {}))

    def _emit_change(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.info(**details, **({"times": times} if times > 1 else {}))

    def _emit_fault(self, details: dict[str, Any], times: int, _records: int) -> None:
        self._log.error(**details, **({"times": times} if times > 1 else {}))


def _client_of(identity: ClientIdentity) -> dict[str, Any]:
    return {"client_address": identity.peer, "client_id": identity.client_id, "principal": identity.principal}


def _line(event: str, details: dict[str, Any]) -> dict[str, Any]:
    shown = {name: cut(value) if isinstance(value, str) else value for name, value in details.items()}
    return {"event": event, **{name: value for name, value in shown.items() if value is not None}}


def _fault_line(event: str, identity: ClientIdentity | ClientDetails, error: BaseException) -> dict[str, Any]:
    line = _line(event, {"client_address": identity.peer, "client_id": identity.client_id})
    return line | {"exception": fault_text(error), "advice": _BUG_ADVICE}


def _wider(key: tuple[str, ...]) -> AggregateKind:
    """Return the kind of all lines with this event, for all clients and reasons."""
    return AggregateKind(key[0], frozenset({"client_address", "client_id", "principal", "reason", "broker", "address"}))


def _event_of(key: tuple[str, ...] | str | None) -> str | None:
    """Return the event of a kind, or of a wider kind (`_wider`)."""
    return key[0] if isinstance(key, tuple) else key


def _host(peer: str) -> str:
    return peer.rpartition(":")[0]


def _recognised(error: SenderError) -> str | None:
    """Return the reason if the first bytes belong to a protocol other than Kafka's. Otherwise return None."""
    if not isinstance(error, FrameSizeError):
        return None
    if error.head[:2] == b"\x16\x03":
        return "a TLS handshake on a plain port: set security.protocol=PLAINTEXT on the client, or use a TLS listener"
    if error.head[:4] in _HTTP_STARTS:
        return "an HTTP request on a Kafka port"
    return None
