"""Interfaces through which a session reports counts, log lines and traces (`sluicegate.proxy.reporting`)."""

from collections import Counter
from collections.abc import Callable
from typing import Protocol, TypeVar

from sluicegate.protocol.errors import SenderError
from sluicegate.proxy.session.client.claimed_principal import UnverifiedReason
from sluicegate.proxy.session.client.identity import ClientIdentity, LoginFailure


class SessionCounts(Protocol):
    """Plain integers to which sessions add.

    `connections_rejected`, `limits_reached` and `closed_by_limit` are counted by the limit's configuration key.
    `throttled` and `throttled_ms` are the number and the duration of clients' pauses, by quota. `slow_requests` counts
    requests on the slow path by API. `topic_setting_changes` counts topics by API. `request_errors` is counted by API
    and kind of error, and `internal_errors` by their effect.
    """

    protocol_errors: int
    upstream_failures: int
    validations_abandoned: int
    acks_0_closed: int
    connections_rejected: Counter[str]
    throttled: Counter[str]
    throttled_ms: Counter[str]
    limits_reached: Counter[str]
    closed_by_limit: Counter[str]
    unsupported_versions: Counter[str]
    slow_requests: Counter[str]
    topic_setting_changes: Counter[str]
    request_errors: Counter[tuple[str, str]]
    internal_errors: Counter[str]


class SessionLines(Protocol):
    """Log lines about connections."""

    def bad_client(self, identity: ClientIdentity, listener: str, error: SenderError, /) -> None:
        """Log that a client violated the protocol and that its connection is being closed."""

    def bad_broker(self, broker: str, address: str, error: SenderError, /) -> None:
        """Log that a broker violated the protocol, or that the process at `address` is not a broker."""

    def login_rejected(self, identity: ClientIdentity, failure: LoginFailure, /) -> None:
        """Log that the broker rejected a client's login."""

    def unverified_principal(self, identity: ClientIdentity, doubt: UnverifiedReason, /) -> None:
        """Log that a client with an unverified principal logged in although policies name principals."""

    def upstream_unreachable(self, broker: str, reason: str, /) -> None:
        """Log that no upstream address accepted the connection and that the client was disconnected."""

    def connection_limit_reached(self, peer: str, limit: str, value: int, /) -> None:
        """Log that a connection was rejected because of the configuration key `limit`, whose value is `value`."""

    def connection_rejected(self, peer: str, limit: str, reason: str, /) -> None:
        """Log that a connection was rejected because of the configuration key `limit`."""

    def throttled(self, identity: ClientIdentity, quota: str, wait_ms: int, /) -> None:
        """Log that a client exceeded its quota and is paused."""

    def closed_by_limit(self, identity: ClientIdentity, listener: str, limit: str, text: str, /) -> None:
        """Log that the limit or deadline with the configuration key `limit` closed a connection."""

    def topic_change_refused(self, identity: ClientIdentity, api: str, topic: str | None, /) -> None:
        """Log that a request that would have changed one of the proxies' own topics was rejected."""

    def request_not_supported(self, identity: ClientIdentity, api: str, advice: str, /) -> None:
        """Log that a request was rejected because the mock cluster does not support its API."""

    def topic_settings_changed(self, identity: ClientIdentity, api: str, topics: str, keys: str, /) -> None:
        """Log that a client changed sluicegate's topic settings."""

    def topic_settings_refused(
        self, identity: ClientIdentity, api: str, topics: str, keys: str, errors: str, /
    ) -> None:
        """Log that the proxy rejected a client's sluicegate topic settings. `errors` contains the errors' names."""

    def topic_settings_not_stored(self, identity: ClientIdentity, api: str, topics: str, reason: str, /) -> None:
        """Log that sluicegate's topic settings could not be stored after the broker had accepted the request."""

    def internal_error(self, identity: ClientIdentity, error: BaseException, /) -> None:
        """Log that an internal error closed the connection."""

    def forwarded_unvalidated(self, identity: ClientIdentity, error: BaseException, /) -> None:
        """Log that a request was forwarded unvalidated after an internal error."""


class BrokerErrorSink(Protocol):
    """Counts the errors that brokers send to clients."""

    def broker_error(self, identity: ClientIdentity, api_key: int, code: int, /) -> None:
        """Count a response of the API `api_key` with the error `code`."""


S_contra = TypeVar("S_contra", contravariant=True)


class SessionRegister(Protocol[S_contra]):
    """The current sessions."""

    def opened(self, session: S_contra, /) -> None:
        """Add a client's session after the client was admitted."""

    def ended(self, session: S_contra, /) -> None:
        """Remove a session that has ended, whether or not its client was admitted."""


class SessionTrace(Protocol):
    """A trace of one connection."""

    def connection_opened(self, peer: str, listener: str, /) -> None:
        """Trace that a client has connected."""

    def client_identified(self, identity: ClientIdentity, /) -> None:
        """Update the client's identity."""

    def request_begun(self, api_key: int, version: int, correlation_id: int, size: int, /) -> None:
        """Trace a request of `size` bytes that has begun to arrive."""

    def token_received(self, size: int, /) -> None:
        """Trace a SASL token without a header."""

    def response_sent(self, head: bytes, size: int, /) -> None:
        """Trace a response of `size` bytes to the client. `head` is its beginning."""

    def reading_paused(self, side: str, reason: str, /) -> None:
        """Trace that the proxy has paused reading from one side."""

    def reading_resumed(self, side: str, reason: str, /) -> None:
        """Trace that the reason for the pause has ended."""

    def session_ending(self, by: str, /) -> None:
        """Trace that the session has begun to end. Only the first report counts."""

    def connection_closed(self) -> None:
        """Trace that both sides are closed."""


BeginTrace = Callable[[], SessionTrace | None]
"""Starts the trace of a new connection. Returns None if tracing is off."""
