"""The broker's side of a session: which request is this the answer to, and what does it need?"""

from typing import TYPE_CHECKING

from protocol.errors import MalformedMessage
from protocol.framing import Disposition, frame_of
from protocol.headers import CORRELATION_ID_BYTES, read_correlation_id
from proxy.in_flight import Finish

if TYPE_CHECKING:
    from proxy.session import Session

_STREAM, _GATHER = Disposition.STREAM, Disposition.GATHER


class BrokerSide:
    """Answers that need nothing pass as they come; the others are gathered and finished."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._finish: Finish | None = None

    def on_head(self, size: int, head: bytes) -> Disposition:
        """Match an answer with the oldest request. Raises MalformedMessage when it is not its answer."""
        self._session.flush_ready()
        exchange = self._session.queue.pop_awaited()
        if exchange is None:
            raise MalformedMessage("the broker sent an answer that nothing asked for")
        asked = exchange.correlation_id
        if asked is not None and (size < CORRELATION_ID_BYTES or read_correlation_id(head) != asked):
            raise MalformedMessage(f"the broker's answer is not to request {asked}")
        self._finish = exchange.finish
        return _STREAM if exchange.finish is None else _GATHER

    def on_pass(self, data: memoryview) -> None:
        """Bytes of an answer that needs nothing."""
        self._session.client.write(bytes(data))

    def on_frame(self, frame: bytearray) -> None:
        """An answer that is rewritten, merged, or meant for the proxy itself."""
        finish, self._finish = self._finish, None
        assert finish is not None
        answer = finish(frame)
        if answer is not None:
            self._session.client.write(frame_of(answer))
