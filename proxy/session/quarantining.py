"""Has the bad records of a refused request kept in their dead-letter topics before its client is answered.

A broker goes first here too: who may not write to a topic, or names one that is not there, shall not write into its
dead-letter topic with the proxy's login. So it is asked about partitions of which it has not just complained of a
stand-in alone (`sluicegate.proxy.responses.broker_probe`). What is not kept, for whatever reason, is answered so that
the client sends it again: no batch is refused for good without its bad records being stored.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from sluicegate.protocol.framing import size_prefix
from sluicegate.protocol.headers import response_body_at
from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.produce_versions import FLEXIBLE_SINCE
from sluicegate.proxy.responses.broker_probe import question_first
from sluicegate.proxy.responses.dead_letters import DeadLetters
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.responses.produce_responses import PROVEN_MS, PartlyRefused, Spot, is_transactional, key_of
from sluicegate.proxy.session.identity import ClientIdentity
from sluicegate.proxy.session.in_flight import Exchange
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.reports import Judgements
from sluicegate.proxy.session.waiting import Tell, Waiting
from sluicegate.validation.produce import Place

if TYPE_CHECKING:
    from sluicegate.proxy.session.session import Session

_BROKER_FIRST = "the broker has a reason of its own to refuse the batch"
Failures = Mapping[Place, str]
"""Why the bad records of some batches were not stored."""


class DeadLetterSink(Protocol):
    """Where bad records go."""

    def write(self, identity: ClientIdentity, letters: Sequence[DeadLetters], tell: Tell[Failures]) -> None:
        """Store them; `tell` once, on the event loop, of which batches something is not stored. Never waits."""


class QuarantineDependencies(Protocol):
    """What it uses of what gates use."""

    @property
    def dead_letters(self) -> DeadLetterSink | None:
        """Where bad records go."""

    @property
    def judgements(self) -> Judgements:
        """Who is told."""

    @property
    def now_ms(self) -> Callable[[], int]:
        """The proxy's clock."""


class Quarantining:
    """For one request. `proven` are the partitions of which a broker has just complained of a stand-in alone, with when
    (ms); `note_proven` remembers more of them.
    """

    def __init__(
        self,
        session: "Session",
        waiting: Waiting,
        dependencies: QuarantineDependencies,
        proven: Mapping[tuple[Spot, int], int],
        note_proven: Callable[[Sequence[Spot], int], None],
    ) -> None:
        self._session = session
        self._waiting = waiting
        self._dependencies = dependencies
        self._proven = proven
        self._note_proven = note_proven

    def keep(self, request: ProduceRequest, correlation_id: int, dispatch: Dispatch, then: Callable[[], None]) -> None:
        """Ask the broker where it has to be asked, have everything stored that can be, then go on."""
        spots = {each.place: _spot_of(request, each.place) for each in dispatch.dead_letters}
        asked = {spot for place, spot in spots.items() if self._is_to_be_asked(request, place, spot)}
        store = partial(self._store, request, dispatch, spots, then)
        if not asked:
            store(asked, set())
            return
        assert dispatch.partly is not None
        ask = partial(self._ask, request, correlation_id, dispatch.partly)
        self._waiting.until(PauseReason.ASKING, ask, partial(store, asked))

    def _is_to_be_asked(self, request: ProduceRequest, place: Place, spot: Spot) -> bool:
        """A transaction's state changes with every request; all else stands for a second."""
        since = self._dependencies.now_ms() - self._proven.get((spot, request.acks), -PROVEN_MS)
        records = request.records(*place)
        return not 0 <= since < PROVEN_MS or (records is not None and is_transactional(records))

    def _ask(self, request: ProduceRequest, correlation_id: int, partly: PartlyRefused, tell: Tell[set[Spot]]) -> None:
        def answered(frame: bytearray) -> None:
            found = partly.left_to_records(
                frame, response_body_at(frame, 1 if request.version >= FLEXIBLE_SINCE else 0)
            )
            self._note_proven(partly.proven_spots, request.acks)
            for topic in partly.proven_topics:
                self._dependencies.judgements.learn(topic)
            tell(found)

        parts = question_first(request, partly.stand_ins)
        self._session.queue.add(Exchange(correlation_id, answered))
        self._session.broker.write_parts((size_prefix(parts), *parts))

    def _store(
        self,
        request: ProduceRequest,
        dispatch: Dispatch,
        spots: Mapping[Place, Spot],
        then: Callable[[], None],
        asked: set[Spot],
        proven: set[Spot],
    ) -> None:
        letters = [each for each in dispatch.dead_letters if spots[each.place] not in asked - proven]
        behind = [each for each in dispatch.dead_letters if spots[each.place] in asked - proven]
        for each in behind:
            self._cannot_keep(dispatch, spots, each, _BROKER_FIRST)
        stored = partial(self._stored, dispatch, spots, letters, then)
        lacking = {each.place: each.lacking for each in letters if each.lacking is not None}
        whole = [each for each in letters if each.lacking is None]
        if not whole:
            stored(lacking, {})
            return
        sink = self._dependencies.dead_letters
        assert sink is not None  # who has rules that want it has it
        ask = partial(sink.write, self._session.identity, whole)
        self._waiting.until(PauseReason.QUARANTINING, ask, partial(stored, lacking))

    def _stored(
        self,
        dispatch: Dispatch,
        spots: Mapping[Place, Spot],
        letters: Sequence[DeadLetters],
        then: Callable[[], None],
        lacking: Failures,
        failed: Failures,
    ) -> None:
        failures = {**lacking, **failed}
        for each in letters:
            if each.place in failures:
                self._cannot_keep(dispatch, spots, each, failures[each.place])
                self._dependencies.judgements.not_quarantined(self._session.identity, each, failures[each.place])
        dispatch.judged.quarantined = frozenset(each.place for each in letters) - failures.keys()
        dispatch.judged.left_open = frozenset(failures)
        dispatch.dead_letters = ()  # nobody needs them while the broker is waited for
        then()

    def _cannot_keep(self, dispatch: Dispatch, spots: Mapping[Place, Spot], letters: DeadLetters, reason: str) -> None:
        assert dispatch.partly is not None
        dispatch.partly.cannot_keep(
            spots[letters.place],
            f"The batch for {letters.source}-{letters.partition} has bad records, which could not be kept in "
            f"{letters.topic}: {reason}. Nothing of the batch is stored; it may be sent again.",
        )


def _spot_of(request: ProduceRequest, place: Place) -> Spot:
    topic = request.topics[place[0]]
    return Spot(key_of(topic), topic.partitions[place[1]].index)
