"""Probes each of the cluster's brokers at the broker's own address.

The cluster's Metadata omits a dead broker only after its session has timed out, and includes a broker that this machine
cannot reach. So the proxy sends every broker an ApiVersions request, to which brokers respond before a login. One
process of a proxy does this for all workers.
"""

import asyncio
import time
from dataclasses import replace

from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.cluster.broker_client import BrokerClient, NoBrokerResponses, ask_any_broker
from sluicegate.proxy.network.tls.contexts import TlsContext
from sluicegate.proxy.reporting.logs.session_log import SessionLog
from sluicegate.proxy.responses.broker_addresses import AddressBook
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status

_EVERY_SECONDS = 5.0
_PROBE_SECONDS = 4.0
_PROBED_AT_ONCE = 20
_REMOVED_SECONDS = 24 * 3600.0
_NOT_LISTED = "it responds, but the cluster does not list it"


class ProbeResults:
    """The results of probes, by node id.

    This class does no I/O: its caller probes the brokers and passes in the time. `cluster_id` is None if it is unknown.
    """

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self._responded_at: dict[int, float] = {}
        self._failures: dict[int, str] = {}
        self._was_listed: set[int] = set()
        self._listed: frozenset[int] | None = None
        self._next = 0

    def due(self, node_ids: list[int]) -> list[int]:
        """Return the brokers to probe now.

        These are all brokers, or the next ones in turn if there are more than 20.
        """
        if len(node_ids) <= _PROBED_AT_ONCE:
            return node_ids
        first = self._next % len(node_ids)
        self._next = first + _PROBED_AT_ONCE
        return (node_ids + node_ids)[first : self._next]

    def listed(self, node_ids: frozenset[int] | None) -> None:
        """Record which brokers the cluster lists. `node_ids` is None if this is unknown."""
        self._listed = node_ids
        self._was_listed |= node_ids or frozenset()

    def probed(self, node_id: int, failure: str | None, now: float) -> None:
        """Record the result of a probe. `failure` is the reason, or None after a success."""
        if failure is None:
            self._failures.pop(node_id, None)
            self._responded_at[node_id] = now
        else:
            self._responded_at.setdefault(node_id, now)
            self._failures[node_id] = failure

    def unreachable(self, now: float) -> dict[int, str]:
        """Return the brokers that clients cannot reach, each with the reason."""
        found = {}
        for node_id, responded_at in self._responded_at.items():
            is_gone = self._listed is not None and node_id in self._was_listed and node_id not in self._listed
            reason = self._failures.get(node_id) or (_NOT_LISTED if is_gone else None)
            if reason is not None and not (is_gone and now - responded_at > _REMOVED_SECONDS):
                found[node_id] = reason
        return found

    def state_of(self, node_id: int, now: float) -> str:
        """Return `reachable`, `unreachable` or `not checked`."""
        if node_id in self._failures or node_id in self.unreachable(now):
            return "unreachable"
        return "reachable" if node_id in self._responded_at else "not checked"


class BrokerWatch:
    """Probes all known brokers every 5 s, and sets or clears each broker's condition."""

    def __init__(
        self,
        upstream: Upstream,
        tls: TlsContext | None,
        book: AddressBook,
        probes: ProbeResults,
        mark: int,
        status: Status,
        log: SessionLog,
    ) -> None:
        """`mark` is the correlation id that identifies this proxy's own requests."""
        self._log = log
        self._unreachable: frozenset[str] = frozenset()
        self._upstream = upstream
        self._tls = tls
        self._book = book
        self._probes = probes
        self._mark = mark
        self._status = status

    async def probe_again(self) -> None:
        """Probe the brokers that are due, and wait."""
        began = time.monotonic()
        await self.probe()
        await asyncio.sleep(max(0.0, _EVERY_SECONDS - (time.monotonic() - began)))

    async def probe(self) -> None:
        """Probe the brokers that are due."""
        address_of = {node_id: self._book.upstream_of(node_id) for node_id in self._book.node_ids}
        known = {node_id: address for node_id, address in address_of.items() if address is not None}
        due = self._probes.due(list(known))
        results = await asyncio.gather(
            *(probe_broker(known[each], self._upstream, self._tls, self._mark) for each in due)
        )
        now = time.monotonic()
        for node_id, failure in zip(due, results, strict=True):
            self._probes.probed(node_id, failure, now)
        unreachable = self._probes.unreachable(now)
        details = {f"broker {each}": f"broker {each} at {known.get(each)}: {unreachable[each]}" for each in unreachable}
        for broker in self._unreachable - details.keys():
            self._log.broker_responds(broker)
        self._unreachable = frozenset(details)
        self._status.set_all(Condition.BROKER_UNREACHABLE, details)


async def probe_broker(address: HostPort, upstream: Upstream, tls: TlsContext | None, mark: int) -> str | None:
    """Return why the broker at `address` does not respond, or None if it does."""
    seconds = min(upstream.connect_timeout_seconds, _PROBE_SECONDS)
    alone = replace(upstream, bootstrap=(address,), sasl=None, connect_timeout_seconds=seconds)
    try:
        await ask_any_broker(alone, tls, _nothing, mark)
    except NoBrokerResponses as error:
        return str(error).removeprefix(f"{address}: ")
    return None


async def _nothing(_client: BrokerClient) -> None:
    """Send no request besides ApiVersions."""
