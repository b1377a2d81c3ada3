"""A request that is validated in a thread."""

from collections.abc import Callable, Hashable
from concurrent.futures import Future

from sluicegate.protocol.produce_request import ProduceRequest
from sluicegate.protocol.records.codecs.decompression_budget import Abandoned
from sluicegate.proxy.responses.dispatch import Dispatch
from sluicegate.proxy.scheduling.fair_sharing import Account
from sluicegate.proxy.scheduling.wait_budget import MayNotWaitHere
from sluicegate.validation.fixes import Previous
from sluicegate.validation.rules.rule import Client

Validation = Future[Dispatch]
"""The result of a thread; cancelled if the request was abandoned."""


class Job:
    """A request of the connection of `account`; `future` gets its dispatch.

    `client`: the sender, if the rulebook depends on it. `previous`: previous times of partitions; None: all known ones.
    """

    def __init__(
        self, request: ProduceRequest, account: Account, client: Client | None, previous: Previous | None = None
    ) -> None:
        self.request = request
        self.previous = previous
        self.client = client
        self.account = account
        self.future: Validation = Future()
        self.is_abandoned = False

    @property
    def on_behalf_of(self) -> Hashable:
        """The key of the client: its address and its confirmed principal."""
        if self.client is None:
            return self.account
        host, _, _ = self.client.address.rpartition(":")
        return host, self.client.principal


def settle(job: Job, validate: Callable[[], Dispatch]) -> None:
    """Set the result of a job. Raises MayNotWaitHere if it still has to be validated."""
    try:
        dispatch = validate()
    except MayNotWaitHere:
        raise
    except Abandoned:
        job.future.cancel()
    except BaseException as error:  # raised again by the future
        job.future.set_exception(error)
    else:
        job.future.set_result(dispatch)
