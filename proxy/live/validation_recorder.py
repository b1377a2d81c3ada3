"""Shows every validation to the observer, and then to the live view. Whatever fails in that, requests go their way."""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.responses.dead_letters import DeadLetters
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.reports import Validations
from sluicegate.validation.produce import ValidatedRequest


class _Lines(Protocol):
    def validation_unreported(self, identity: ClientIdentity, error: BaseException, /) -> None: ...


class ValidationRecorder:
    """Validations as a session tells them. `internal_errors` counts what failed, and `log` has a line of it."""

    def __init__(
        self,
        observer: Validations,
        view: LiveView,
        now_ms: Callable[[], int],
        log: _Lines,
        internal_errors: Counter[str],
    ) -> None:
        self._observer = observer
        self._view = view
        self._now_ms = now_ms
        self._log = log
        self._internal_errors = internal_errors

    def validated(self, identity: ClientIdentity, request: ProduceRequest, validated: ValidatedRequest) -> None:
        """One Produce request was validated."""
        try:
            self._observer.validated(identity, request, validated)
            self._view.validated(request, validated, self._now_ms())
        except Exception as error:
            self._failed(identity, error)

    def not_quarantined(self, identity: ClientIdentity, letters: DeadLetters, reason: str) -> None:
        """The bad records of a batch could not be kept; its client was told to send it again."""
        try:
            self._observer.not_quarantined(identity, letters, reason)
        except Exception as error:
            self._failed(identity, error)

    def learn(self, topic: str) -> None:
        """A broker's answer has shown that `topic` exists."""
        self._observer.learn(topic)

    def _failed(self, identity: ClientIdentity, error: Exception) -> None:
        self._internal_errors["unreported"] += 1
        self._log.validation_unreported(identity, error)
