"""Shows every judgement to the observer, and then to the live view."""

from collections.abc import Callable

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.answers.dead_letters import DeadLetters
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.session.identity import ClientIdentity
from sluicegate.proxy.session.reports import Judgements
from sluicegate.validation.produce import JudgedRequest


class SeenLive:
    """Judgements as a session tells them."""

    def __init__(self, observer: Judgements, view: LiveView, now_ms: Callable[[], int]) -> None:
        self._observer = observer
        self._view = view
        self._now_ms = now_ms

    def judged(self, identity: ClientIdentity, request: ProduceRequest, judged: JudgedRequest) -> None:
        """One Produce request was judged."""
        self._observer.judged(identity, request, judged)
        self._view.judged(request, judged, self._now_ms())

    def not_quarantined(self, identity: ClientIdentity, letters: DeadLetters, reason: str) -> None:
        """The bad records of a batch could not be kept; its client was told to send it again."""
        self._observer.not_quarantined(identity, letters, reason)

    def learn(self, topic: str) -> None:
        """A broker's answer has shown that `topic` exists."""
        self._observer.learn(topic)
