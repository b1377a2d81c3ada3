"""A validation that runs in a thread while its client is paused."""

from functools import partial

from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.scheduling.validation_thread import Job, Validation
from sluicegate.proxy.session.produce.dependencies import ProduceDependencies
from sluicegate.proxy.session.produce.effects import Validate
from sluicegate.proxy.session.produce.stored_times import StoredTimes
from sluicegate.proxy.session.request_runner import Resume


class ValidationInThread:
    """A validation in a thread, until it is complete or abandoned."""

    def __init__(
        self, shared: ProduceDependencies, effect: Validate, account: Account, stored_times: StoredTimes
    ) -> None:
        self._shared = shared
        self._effect = effect
        self._account = account
        self._previous = stored_times.previous
        self._job: Job | None = None

    def ask(self, resume: Resume) -> None:
        """Submit the request for validation, and call `resume` with the result."""
        request, client = self._effect.request, self._effect.client
        self._job = self._shared.scheduler.submit(request, self._account, client, self._previous)
        self._job.future.add_done_callback(partial(self._shared.from_thread, partial(self._done, resume)))

    def abandon(self) -> None:
        """Cancel the validation, because its result is not needed."""
        if self._job is not None and not self._job.is_abandoned:
            self._shared.counts.validations_abandoned += 1
            self._shared.scheduler.abandon(self._job)

    def _done(self, resume: Resume, validation: Validation) -> None:
        self._job = None  # breaks the reference cycle through the job's future
        if validation.cancelled():
            resume(None)
            return
        error = validation.exception()
        if error is not None:
            resume(None, error)
        else:
            resume(validation.result())
