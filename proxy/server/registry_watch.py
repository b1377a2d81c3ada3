"""Reports registries that do not respond, with the clients that wait for them, and repeats failed lookups."""

import asyncio

from sluicegate.proxy.registry.failed_look_ups import LookUp
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.waiting_records import WaitingRecords
from sluicegate.proxy.server.schema_watch import SchemaWatch
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status

_EVERY_SECONDS = 1.0


class RegistryWatch:
    """Watches one process's registries."""

    def __init__(
        self, registries: Registries, waiting: WaitingRecords, status: Status, schema_watch: SchemaWatch | None
    ) -> None:
        """`schema_watch` is None if another process of the proxy surveys the registries."""
        self._registries = registries
        self._waiting = waiting
        self._status = status
        self._schema_watch = schema_watch

    async def repeat_look_ups(self) -> None:
        """Wait, then check all registries."""
        await asyncio.sleep(_EVERY_SECONDS)
        self.update_conditions()

    def update_conditions(self) -> None:
        """Set the condition of each registry that does not respond, clear all others, and repeat failed lookups."""
        self._registries.repeat_failed()
        failing = self._registries.failing()
        for name, reason in ({} if self._schema_watch is None else self._schema_watch.failures).items():
            failing.setdefault(name, {})[LookUp.NEWEST] = reason
        self._waiting.keep_only(set(failing))
        for name, found in failing.items():
            self._status.begin(
                Condition.REGISTRY_UNREACHABLE,
                _detail(name, found),
                name,
                waiting=self._waiting.waiting_for_registry(name),
            )
        self._status.end_others(Condition.REGISTRY_UNREACHABLE, failing)


def _detail(name: str, found: dict[LookUp, str]) -> str:
    by_reason: dict[str, list[str]] = {}
    for kind, reason in found.items():
        by_reason.setdefault(reason, []).append(kind.value)
    said = "; ".join(f"{' and '.join(kinds)}: {reason}" for reason, kinds in by_reason.items())
    return f"registry {name} has no usable response for {said}"
