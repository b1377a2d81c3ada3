"""The log lines of connections; a peer that fails again and again fills one line a minute."""

import time
from typing import Any

import structlog

from protocol.errors import FrameSizeError, SenderError
from proxy.aggregation import Aggregator
from proxy.identity import ClientIdentity, LoginFailure

_INTERVAL_SECONDS = 60
_HTTP_STARTS = (b"GET ", b"POST", b"HEAD", b"PUT ", b"DELE", b"OPTI")


class SessionLog:
    """Says what happened to a connection, to whom, and what to do."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("sluicegate.session")
        self._lines = Aggregator(_INTERVAL_SECONDS, self._emit)

    def bad_client(self, identity: ClientIdentity, listener: str, error: SenderError) -> None:
        """A client broke the protocol; its connection is being closed."""
        host = identity.peer.rpartition(":")[0]
        reason = _recognised(error) or str(error)
        details = {"peer": identity.peer, "client_id": identity.client_id, "listener": listener, "reason": reason}
        self._note("client connection closed", (host, reason), details)

    def bad_broker(self, broker: str, error: SenderError) -> None:
        """A broker broke the protocol, or something that is no broker answered."""
        self._note("upstream connection closed", (broker, str(error)), {"broker": broker, "reason": str(error)})

    def login_refused(self, identity: ClientIdentity, failure: LoginFailure) -> None:
        """The broker did not let a client in; it says so to the client in its own words."""
        host = identity.peer.rpartition(":")[0]
        details = {
            "peer": identity.peer,
            "client_id": identity.client_id,
            "principal": failure.principal,
            "mechanism": failure.mechanism,
            "reason": failure.reason,
        }
        self._note("login refused by the broker", (host, str(failure.principal)), details)

    def handshake_failed(self, peer: str, listener: str, reason: str) -> None:
        """A client got no TLS connection."""
        host = peer.rpartition(":")[0]
        details = {"peer": peer, "listener": listener, "reason": reason}
        self._note("client's TLS handshake failed", (host, reason), details)

    def cannot_accept(self, listener: str, reason: str) -> None:
        """A connection that the system would not hand over, as when no more files can be opened."""
        self._note("cannot accept connections", (listener, reason), {"listener": listener, "reason": reason})

    def upstream_unreachable(self, broker: str, reason: str) -> None:
        """No upstream address took the connection; the client was disconnected and will try again."""
        self._note("upstream unreachable", (broker,), {"broker": broker, "reason": reason})

    def upstream_silent(self, reason: str) -> None:
        """The proxy's own look at the cluster found no broker; it looks again every few seconds."""
        self._note("no upstream broker answers", (reason,), {"reason": reason})

    def judgement_failed(self, identity: ClientIdentity, error: BaseException) -> None:
        """Our own fault: the batch was neither forwarded nor answered, and the connection was closed."""
        self._log.error("judgement failed, connection closed", peer=identity.peer, exc_info=error)

    def sweep(self) -> None:
        """Write what has gathered."""
        self._lines.sweep(time.monotonic())

    def flush(self) -> None:
        """Write all that has gathered."""
        self._lines.flush()

    def _note(self, event: str, key: tuple[str, ...], details: dict[str, Any]) -> None:
        self._lines.note((event, *key), {"event": event, **details}, 0, time.monotonic())

    def _emit(self, details: dict[str, Any], times: int, _records: int) -> None:
        event, rest = details["event"], {k: v for k, v in details.items() if k != "event" and v is not None}
        self._log.warning(event, **rest, **({"times": times} if times > 1 else {}))


def _recognised(error: SenderError) -> str | None:
    """What speaks here instead of Kafka, when its first bytes tell."""
    if not isinstance(error, FrameSizeError):
        return None
    if error.head[:2] == b"\x16\x03":
        return "a TLS handshake on a plain port: set security.protocol=PLAINTEXT on the client, or use a TLS listener"
    if error.head[:4] in _HTTP_STARTS:
        return "an HTTP request on a Kafka port"
    return None
