"""How long requests take: in the proxy, and until their broker answers. The time is handed in."""

from collections.abc import Callable

from sluicegate.proxy.session.in_flight import Exchange
from sluicegate.proxy.session.reports import Times, Traces


class RequestClock:
    """Of one proxy. `seconds` is a monotonic clock; `times` is told what it shows, and `traces` of answers."""

    def __init__(self, seconds: Callable[[], float], times: Times, traces: Traces | None = None) -> None:
        self.now = seconds
        self._times = times
        self._traces = traces

    def sent(self, api_key: int, came: float, exchange: Exchange | None, stands_for: int = 1) -> None:
        """A request that came whole at `came` has just been sent on, or answered here (`exchange` None: no broker's
        answer is waited for). `stands_for`: how many like it, of which only this one is timed, itself included.
        """
        now = self.now()
        self._times.in_proxy(api_key, now - came, stands_for)
        if exchange is not None:
            self.awaits(api_key, exchange, now, stands_for)

    def awaits(self, api_key: int, exchange: Exchange, now: float, stands_for: int = 1) -> None:
        """A request goes to a broker `now`."""
        exchange.sent_at = now
        exchange.api_key = api_key
        exchange.stands_for = stands_for

    def answered(self, exchange: Exchange) -> None:
        """A broker's answer begins, to a request that is timed."""
        seconds = self.now() - exchange.sent_at
        self._times.upstream(exchange.api_key, seconds, exchange.stands_for)
        if self._traces is not None:
            self._traces.answered(exchange, seconds)
