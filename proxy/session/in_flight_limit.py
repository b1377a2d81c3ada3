"""Limits the in-flight requests on all connections (`limits.max_in_flight_total`)."""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.in_flight import InFlightQueue, InFlightTotal
from sluicegate.proxy.session.limit_names import IN_FLIGHT_TOTAL
from sluicegate.proxy.session.pause_reason import PauseReason

# The interval between checks while clients wait.
_CHECK_SECONDS = 0.01


class InFlightLimit:
    """Pauses clients at the limit and resumes them in order.

    The fast path does not report responses. So the number of requests is polled while clients wait.
    """

    def __init__(
        self,
        most: int | None,
        call_later: Callable[[float, Callable[[], None]], Any],
        log_pause: Callable[[str, str, str], None],
        reached: Counter[str],
    ) -> None:
        """If `most` is None, there is no limit.

        `log_pause` logs the peer, the configuration key and the reason. `reached` counts pauses by configuration key.
        """
        self.total = InFlightTotal(most)
        self._call_later = call_later
        self._log_pause = log_pause
        self._reached = reached
        self._waiting: deque[tuple[Connection, InFlightQueue]] = deque()

    def check(self, client: Connection, queue: InFlightQueue) -> None:
        """Pause `client` if the limit is reached. `queue` contains the client's requests."""
        if (
            not self.total.is_full()
            or PauseReason.IN_FLIGHT_TOTAL in client.pause_reasons
            or must_keep_reading(client, queue)
        ):
            return
        client.pause(PauseReason.IN_FLIGHT_TOTAL)
        self._reached[IN_FLIGHT_TOTAL] += 1
        why = f"{self.total.count} requests of all clients await responses: raise {IN_FLIGHT_TOTAL} to allow more"
        self._log_pause(client.peer_info.peer, IN_FLIGHT_TOTAL, why)
        self._waiting.append((client, queue))
        if len(self._waiting) == 1:
            self._call_later(_CHECK_SECONDS, self._recheck)

    def _recheck(self) -> None:
        room = self.total.most - self.total.count
        waiting, self._waiting = self._waiting, deque()
        free = []
        for client, queue in waiting:
            if client.closed or must_keep_reading(client, queue):
                free.append(client)
            elif room > 0:
                room -= 1
                free.append(client)
            else:
                self._waiting.append((client, queue))
        if self._waiting:
            self._call_later(_CHECK_SECONDS, self._recheck)
        for client in free:
            client.resume(PauseReason.IN_FLIGHT_TOTAL)


def must_keep_reading(client: Connection, queue: InFlightQueue) -> bool:
    """Return whether one of the client's requests is forwarded only in part, so that the broker cannot respond yet."""
    return client.mid_pass and len(queue) <= 1
