"""How long requests take, by API: the names of those that brokers have, and nothing that a client says."""

from sluicegate.protocol.api import APIS
from sluicegate.proxy.reporting.metrics.counters import Tally

_NAMES = {key: api.name for key, api in APIS.items()}


class RequestTimes:
    """Adds to `tally`."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def in_proxy(self, api_key: int, seconds: float, stands_for: int) -> None:
        """From when it had come whole until it was sent on, or answered by the proxy."""
        self._tally.proxy_seconds.add(_NAMES[api_key], seconds, stands_for)

    def upstream(self, api_key: int, seconds: float, stands_for: int) -> None:
        """From when it was sent on until its broker's answer began."""
        self._tally.upstream_seconds.add(_NAMES[api_key], seconds, stands_for)
