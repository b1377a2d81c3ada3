"""Decides for the fast path whether ordinary requests may pass, and how to finish their responses."""

from functools import partial

from sluicegate.protocol.framing import Parts
from sluicegate.protocol.headers import CORRELATION_ID_BYTES, response_body_at
from sluicegate.protocol.produce_response import tail_with_endpoints
from sluicegate.protocol.produce_versions import NODE_ENDPOINTS_SINCE
from sluicegate.proxy.responses.rewriting import ResponseRewriter
from sluicegate.proxy.session.client.identity import ClientIdentity, SaslStage, SaslTracker
from sluicegate.proxy.session.in_flight import Finish

_RAW_TOKENS = SaslStage.RAW_TOKENS  # an enum lookup costs more than the comparison


class ClusterLogin:
    """`is_wanted`: the last known state of whether the cluster requires a login."""

    def __init__(self) -> None:
        self.is_wanted = False


class PassThrough:
    """The fast path's view of one session. `has_begun`: its first request was read, so it has a broker."""

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
        """Whether ordinary requests may pass: the first request was read, and no login is in progress."""
        return (
            self.has_begun
            and self._sasl.stage is not _RAW_TOKENS
            and (self._sasl.logged_in or not self._login.is_wanted)
        )

    def plain_finish(self, version: int) -> Finish | None:
        """Return how to finish the response to an unchanged Produce request: from v10 on addresses are rewritten."""
        if version != self._finish_version:
            self._finish_version = version
            rewrites = version >= NODE_ENDPOINTS_SINCE
            self._finish = partial(_with_our_endpoints, self._identity, self._rewriter, version) if rewrites else None
        return self._finish


def _with_our_endpoints(identity: ClientIdentity, rewriter: ResponseRewriter, version: int, frame: bytearray) -> Parts:
    # The header nearly always has no tags.
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
