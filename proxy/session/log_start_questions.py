"""Asks brokers where logs start, for answers to refused requests: once for all that wait for the same partition's."""

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from sluicegate.protocol.framing import Parts, frame_of
from sluicegate.protocol.log_start_question import log_starts_in, question
from sluicegate.protocol.topic_name import is_legal_topic_name
from sluicegate.proxy.responses.produce_responses import PartlyRefused, Spot
from sluicegate.proxy.session.dependencies import ProduceDependencies
from sluicegate.proxy.session.in_flight import Exchange

if TYPE_CHECKING:
    from sluicegate.proxy.session.session import Session

_OUR_CORRELATION_ID = -1


class LogStartQuestions:
    """Of one session, on its own connection to the broker."""

    def __init__(self, session: "Session", dependencies: ProduceDependencies) -> None:
        self._session = session
        self._dependencies = dependencies
        self._waiting: dict[Spot, list[PartlyRefused]] = {}

    def ask_for(self, partly: PartlyRefused) -> Parts:
        """What is to be sent just before the request, so that the answer is there before the request's. Nothing where
        that is being asked already.
        """
        by_id = self._dependencies.names.by_id
        named: dict[tuple[str, int], Spot] = {}
        partitions: dict[str, list[int]] = {}
        for spot in partly.asked_log_starts:
            waiting = self._waiting.get(spot)
            if waiting is not None:
                waiting.append(partly)
                continue
            name = spot.topic if isinstance(spot.topic, str) else by_id.get(spot.topic)
            if name is not None and is_legal_topic_name(name):
                named[name, spot.partition] = spot
                partitions.setdefault(name, []).append(spot.partition)
                self._waiting[spot] = [partly]
        if not named:
            return ()
        self._session.queue.add(Exchange(_OUR_CORRELATION_ID, partial(self._answered, named)))
        return (frame_of(question(partitions, _OUR_CORRELATION_ID)),)

    def end(self) -> None:
        """The session is over."""
        self._waiting.clear()

    def _answered(self, named: Mapping[tuple[str, int], Spot], answer: bytearray) -> None:
        told = log_starts_in(answer, len(named))
        now_ms = self._dependencies.now_ms()
        for place, spot in named.items():
            waiting = self._waiting.pop(spot)
            if place in told:
                for partly in waiting:
                    partly.log_start_told(spot, told[place], now_ms)
