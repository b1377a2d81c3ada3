"""Has the bad records of a rejected request stored in their dead-letter topics before its client gets a response.

The broker goes first here too: a client that may not write to a topic, or names one that does not exist, must not write
into its dead-letter topic with the proxy's login. So the broker is asked about partitions of which it has not just
complained of a stand-in alone (`sluicegate.proxy.responses.stand_ins`). If something is not stored, for whatever
reason, the client is told to send its batch again: no batch is rejected for good without its bad records being stored.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from sluicegate.protocol.headers import response_body_at
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.produce_versions import FLEXIBLE_SINCE
from sluicegate.proxy.responses.dispatch import DeadLetters, Dispatch
from sluicegate.proxy.responses.produce_responses import (
    MOST_ALONE,
    PROVEN_MS,
    PartlyRejected,
    Spot,
    is_transactional,
    key_of,
)
from sluicegate.proxy.responses.stand_ins import probe_request
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.produce.effects import AskBroker, Quarantined
from sluicegate.proxy.session.request_runner import Steps
from sluicegate.validation.produce import Place

_BROKER_FIRST = "the broker has a reason of its own to reject the batch"
# Partitions of one connection of which a broker's word is remembered, before all are forgotten.
_MOST_PROVEN = MOST_ALONE


class Validations(Protocol):
    """Is told of bad records, and of topics."""

    def not_quarantined(self, identity: ClientIdentity, letters: DeadLetters, reason: str, /) -> None:
        """The bad records of a batch could not be kept; its client was told to send it again."""

    def learn(self, topic: str, /) -> None:
        """A broker's answer has shown that `topic` exists."""


class ProvenPartitions:
    """Partitions of which a broker has just complained of nothing but a stand-in, with when (ms), by acks."""

    def __init__(self, validations: Validations, now_ms: Callable[[], int]) -> None:
        self._validations = validations
        self._now_ms = now_ms
        self.since: dict[tuple[Spot, int], int] = {}

    def learn(self, partly: PartlyRejected, acks: int) -> None:
        """The broker has responded to a request with stand-ins."""
        proven = partly.proven_spots[:_MOST_PROVEN]
        if len(self.since) + len(proven) > _MOST_PROVEN:
            self.since.clear()
        now_ms = self._now_ms()
        for spot in proven:
            self.since[spot, acks] = now_ms
        for topic in partly.proven_topics:
            self._validations.learn(topic)


class Quarantining:
    """Of one session."""

    def __init__(
        self,
        identity: ClientIdentity,
        validations: Validations,
        now_ms: Callable[[], int],
        proven: ProvenPartitions,
    ) -> None:
        self._identity = identity
        self._validations = validations
        self._now_ms = now_ms
        self._proven = proven

    def keep(self, request: ProduceRequest, correlation_id: int, dispatch: Dispatch) -> Steps[None]:
        """Ask the broker where it has to be asked, then have everything stored that can be."""
        partly = dispatch.partly
        assert partly is not None
        spots = {each.place: _spot_of(request, each.place) for each in dispatch.dead_letters}
        asked = {spot for place, spot in spots.items() if self._is_to_be_asked(request, place, spot)}
        unproven: set[Spot] = set()
        if asked:
            question = probe_request(request, partly.stand_ins)
            unproven = asked - (yield AskBroker(question, correlation_id, partial(self._read, request, partly)))
        letters = []
        for each in dispatch.dead_letters:
            if spots[each.place] in unproven:
                _quarantine_failed(partly, spots, each, _BROKER_FIRST)
            else:
                letters.append(each)
        failures = {each.place: each.lacking for each in letters if each.lacking is not None}
        whole = [each for each in letters if each.lacking is None]
        if whole:
            failures.update((yield Quarantined(whole)))
        for each in letters:
            if each.place in failures:
                _quarantine_failed(partly, spots, each, failures[each.place])
                self._validations.not_quarantined(self._identity, each, failures[each.place])
        dispatch.validated.quarantined = frozenset(each.place for each in letters) - failures.keys()
        dispatch.validated.left_open = frozenset(failures)
        dispatch.dead_letters = ()  # nobody needs them while the broker is waited for

    def _is_to_be_asked(self, request: ProduceRequest, place: Place, spot: Spot) -> bool:
        """A transaction's state changes with every request; the broker's word on all else holds for a second."""
        since = self._now_ms() - self._proven.since.get((spot, request.acks), -PROVEN_MS)
        records = request.records(*place)
        return not 0 <= since < PROVEN_MS or (records is not None and is_transactional(records))

    def _read(self, request: ProduceRequest, partly: PartlyRejected, frame: bytearray) -> set[Spot]:
        found = partly.read_probe_response(
            frame, response_body_at(frame, 1 if request.version >= FLEXIBLE_SINCE else 0)
        )
        self._proven.learn(partly, request.acks)
        return found


def _quarantine_failed(partly: PartlyRejected, spots: Mapping[Place, Spot], letters: DeadLetters, reason: str) -> None:
    partly.quarantine_failed(
        spots[letters.place],
        f"The batch for {letters.source}-{letters.partition} has bad records, which could not be kept in "
        f"{letters.topic}: {reason}. Nothing of the batch is stored; it may be sent again.",
    )


def _spot_of(request: ProduceRequest, place: Place) -> Spot:
    topic = request.topics[place[0]]
    return Spot(key_of(topic), topic.partitions[place[1]].index)
