"""What a session tells of itself. Who counts, writes lines and follows connections (`sluicegate.proxy.reporting`) is
handed in.
"""

from collections import Counter
from collections.abc import Callable
from typing import Protocol, TypeVar

from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.responses.dispatch import DeadLetters
from sluicegate.proxy.session.client.identity import ClientIdentity, LoginFailure
from sluicegate.validation.produce import ValidatedRequest


class Counts(Protocol):
    """Plain integers that sessions add to; `connections_rejected`, `limits_reached` and `cut_off` by the limit (its
    key), `throttled` and `throttled_ms` (how often clients were made to wait, and for how long) by the quota,
    `slow_requests` (requests that the slow path took) by API, `request_errors` by API and what it was,
    `internal_errors` by what was done.
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
    request_errors: Counter[tuple[str, str]]
    internal_errors: Counter[str]


class Lines(Protocol):
    """What is written of connections, for people."""

    def bad_client(self, identity: ClientIdentity, listener: str, error: SenderError, /) -> None:
        """A client broke the protocol; its connection is being closed."""

    def bad_broker(self, broker: str, address: str, error: SenderError, /) -> None:
        """A broker broke the protocol, or something that is no broker answered; `address` is where it is."""

    def login_rejected(self, identity: ClientIdentity, failure: LoginFailure, /) -> None:
        """The broker did not let a client in."""

    def unverified_principal(self, identity: ClientIdentity, /) -> None:
        """A client has logged in with OAUTHBEARER, policies name principals, and no claim is configured."""

    def upstream_unreachable(self, broker: str, reason: str, /) -> None:
        """No upstream address took the connection; the client was disconnected."""

    def connection_limit_reached(self, peer: str, limit: str, value: int, /) -> None:
        """A connection was not taken: `limit` is reached, whose value this is."""

    def connection_rejected(self, peer: str, limit: str, reason: str, /) -> None:
        """A connection was not taken: `limit` is the key that says who may connect, or how often."""

    def throttled(self, identity: ClientIdentity, quota: str, wait_ms: int, /) -> None:
        """A client has sent more than its quota allows, and is not read for so long."""

    def closed_by_limit(self, identity: ClientIdentity, listener: str, limit: str, text: str, /) -> None:
        """A connection was ended by a limit or a deadline of ours: its key, and what happened."""

    def internal_error(self, identity: ClientIdentity, error: BaseException, /) -> None:
        """Our own fault; the connection was closed."""

    def forwarded_unvalidated(self, identity: ClientIdentity, error: BaseException, /) -> None:
        """The same, and a request went on as it came."""

    def validation_unreported(self, identity: ClientIdentity, error: BaseException, /) -> None:
        """The same, and what was validated is not counted or told, or in part."""


class Validations(Protocol):
    """Sees every validation, and never changes one."""

    def validated(self, identity: ClientIdentity, request: ProduceRequest, validated: ValidatedRequest, /) -> None:
        """One Produce request was validated."""

    def not_quarantined(self, identity: ClientIdentity, letters: DeadLetters, reason: str, /) -> None:
        """The bad records of a batch could not be kept; its client was told to send it again."""

    def learn(self, topic: str, /) -> None:
        """A broker's answer has shown that `topic` exists."""


S_contra = TypeVar("S_contra", contravariant=True)


class Register(Protocol[S_contra]):
    """Knows the sessions that there are."""

    def opened(self, session: S_contra, /) -> None:
        """One was let in."""

    def ended(self, session: S_contra, /) -> None:
        """One is over, let in or not."""


class SessionTrace(Protocol):
    """One connection's life, for who follows it."""

    def opened(self, peer: str, listener: str, /) -> None:
        """A client has come."""

    def known(self, identity: ClientIdentity, /) -> None:
        """Look who the client is by now."""

    def request(self, api_key: int, version: int, correlation_id: int, size: int, /) -> None:
        """A request has begun to arrive; `size` in bytes."""

    def token(self, size: int, /) -> None:
        """A SASL token without a header."""

    def response(self, head: bytes, size: int, /) -> None:
        """An answer goes to the client: `size` bytes, of which `head` is the beginning."""

    def paused(self, side: str, reason: str, /) -> None:
        """The proxy stops reading from one side."""

    def resumed(self, side: str, reason: str, /) -> None:
        """That reason is gone."""

    def ends(self, by: str, /) -> None:
        """Somebody begins to end it; the first counts."""

    def closed(self) -> None:
        """Both sides are closed."""


BeginTrace = Callable[[], SessionTrace | None]
"""For a new connection; None: nobody wants to follow it."""
