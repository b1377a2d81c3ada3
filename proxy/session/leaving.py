"""How a session ends: what has come is dealt with and answered, the broker is told, then both are closed."""

from collections.abc import Callable

from sluicegate.protocol.framing import frame_of
from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.hold import Hold
from sluicegate.proxy.session.in_flight import Exchange, InFlightQueue
from sluicegate.proxy.session.last_question import LAST_CORRELATION_ID, last_question
from sluicegate.proxy.session.life import Happening, Life, Stage
from sluicegate.proxy.session.outlets import LoopCalls, Timer
from sluicegate.proxy.session.request_side import ClientSide

# How long a side that has been told that no more will come may take to finish.
_LINGER_SECONDS = 10
_DRAINING = Stage.DRAINING  # named here, because looking an enum's member up takes longer than the comparison


class Leaving:
    """The end of one session. `abort` cuts both sides off."""

    def __init__(
        self,
        life: Life,
        client: Connection,
        broker: Connection,
        requests: ClientSide,
        queue: InFlightQueue,
        loop: LoopCalls,
        abort: Callable[[], None],
    ) -> None:
        self._life = life
        self._client = client
        self._broker = broker
        self._requests = requests
        self._queue = queue
        self._loop = loop
        self._abort = abort
        self._linger: Timer | None = None

    def drain(self) -> None:
        """Take no more requests, let what is in flight be answered, then close."""
        self._life.comes_to(Happening.IS_TO_END)
        self._take_no_more()
        self.close_if_idle()

    def client_was_read(self) -> None:
        """That may have been the end of the last request that is taken."""
        if self._life.stage is _DRAINING:
            self._take_no_more()

    def _take_no_more(self) -> None:
        """A request that is being passed on comes to its end first: to its beginning alone a broker says nothing."""
        if not self._client.mid_pass:
            self._client.hold(Hold.DRAINING)

    def close_behind_answers(self) -> None:
        """A broker has answered all that came before when it reads what it closes a connection for."""
        if not self._client.closed:
            self._begin_to_linger()
            self.drain()

    def close_if_idle(self) -> None:
        """Nothing is in flight any more, or is about to be?"""
        if len(self._queue) == 0 and not self._broker.mid_frame and not self._requests.is_busy:
            self.finish()

    def settled(self) -> None:
        """A judgement that was waited for is done, or the broker has answered."""
        stage = self._life.stage
        if stage is Stage.LEAVING:
            self.say_goodbye()
        elif stage is Stage.DRAINING:
            self.close_if_idle()

    def finish(self) -> None:
        """End the session once the broker has taken everything that was forwarded, as a broker closes after storing.

        The broker closes its side when it has; only then does the client see the end.
        """
        if self._broker.is_open:
            self.say_goodbye()
        else:
            self._client.close()

    def say_goodbye(self) -> None:
        """No more requests will come; answers under way may still arrive, for a bounded time."""
        if not self._broker.is_open:
            return
        if self._requests.is_busy:  # one that had arrived whole is still to be forwarded
            self._life.comes_to(Happening.LAST_IS_BUSY)
            return
        if not self._life.comes_to(Happening.GOODBYE_SAID):
            return
        self._begin_to_linger()
        if self._broker.can_half_close:
            self._broker.write_eof()
        elif self._requests.may_ask:
            self._queue.add(Exchange(LAST_CORRELATION_ID, self._last_answered))
            self._broker.write(frame_of(last_question()))
        else:
            self._broker.close()

    def end(self) -> None:
        """Both have gone."""
        self._life.comes_to(Happening.BOTH_GONE)
        if self._linger is not None:
            self._linger.cancel()

    def _begin_to_linger(self) -> None:
        if self._linger is None:
            self._linger = self._loop.call_later(_LINGER_SECONDS, self._abort)

    def _last_answered(self, _answer: bytearray) -> None:
        """Brokers take a connection's requests in turn: all that came before has been dealt with."""
        self._broker.close()
