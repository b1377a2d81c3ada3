"""Decides whether the fast path may forward ordinary requests, and how their responses are finished."""

from functools import partial

from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import CORRELATION_ID_BYTES, response_body_at
from sluicegate.protocol.produce_response import tail_with_endpoints
from sluicegate.protocol.produce_versions import NODE_ENDPOINTS_SINCE
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.proxy.session.client.identity import ClientIdentity, SaslStage, SaslTracker
from sluicegate.proxy.session.in_flight import Finish

_RAW_TOKENS = SaslStage.RAW_TOKENS  # a global, because looking up an enum member costs more than the comparison


class ClusterLogin:
    """Whether the cluster requires a login. `is_wanted` is the last known state."""

    def __init__(self) -> None:
        self.is_wanted = False


class PassThrough:
    """One session's state that the fast path needs.

    `has_begun` is true after the first request was read, so that a broker is connected or connecting.
    """

    def __init__(
        self, identity: ClientIdentity, sasl: SaslTracker, login: ClusterLogin, rewriter: ResponseRewriter
    ) -> None:
        self._identity = identity
        self._sasl = sasl
        self._login = login
        self._rewriter = rewriter
        self._finish: Finish | None = None
        self._finish_version = -1
        self.has_begun = False

    @property
    def takes_ordinary(self) -> bool:
        """Whether the fast path may forward ordinary requests.

        The first request must have been read, and no login may be in progress.
        """
        return (
            self.has_begun
            and self._sasl.stage is not _RAW_TOKENS
            and (self._sasl.logged_in or not self._login.is_wanted)
        )

    def plain_finish(self, version: int) -> Finish | None:
        """Return the function that finishes the response to an unchanged Produce request of this version.

        From v10 on, it rewrites the broker addresses in the response.
        """
        if version != self._finish_version:
            self._finish_version = version
            rewrites = version >= NODE_ENDPOINTS_SINCE
            self._finish = partial(_with_our_endpoints, self._identity, self._rewriter, version) if rewrites else None
        return self._finish


def _with_our_endpoints(identity: ClientIdentity, rewriter: ResponseRewriter, version: int, frame: bytearray) -> Parts:
    # The header nearly always has no tagged fields.
    body_at = (
        CORRELATION_ID_BYTES + 1
        if frame[CORRELATION_ID_BYTES : CORRELATION_ID_BYTES + 1] == b"\0"
        else response_body_at(frame, 1)
    )
    tail_at = tail_with_endpoints(frame, version, body_at)
    if tail_at < 0:
        return (frame,)
    view = memoryview(frame)
    return view[:tail_at], rewriter.produce_tail(view[tail_at:], identity.client_id)
