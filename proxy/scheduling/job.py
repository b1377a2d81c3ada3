"""A request that is not validated where it arrives."""

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
"""What a thread has found; cancelled where nobody wanted it any more."""


class Job:
    """A request that a thread validates for the connection of `account`; `future` gets what is to be sent for it.

    `client`: who sent it, where that is asked. `previous`: the times of partitions for it; None: all that are known.
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
        """The same for all requests of one client: its address, and who the broker has confirmed that it is."""
        if self.client is None:
            return self.account
        host, _, _ = self.client.address.rpartition(":")
        return host, self.client.principal


def settle(job: Job, validate: Callable[[], Dispatch]) -> None:
    """Tell whoever waits for a job what comes of it. Raises MayNotWaitHere: it is still to be validated."""
    try:
        dispatch = validate()
    except MayNotWaitHere:
        raise
    except Abandoned:
        job.future.cancel()
    except BaseException as error:  # whoever waits for it is told
        job.future.set_exception(error)
    else:
        job.future.set_result(dispatch)
