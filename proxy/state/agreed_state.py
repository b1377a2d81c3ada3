"""The state that results from applying the changes of the state topic one after another."""

from dataclasses import dataclass, replace

from sluicegate.proxy.state.change import ResumeEnforcement, StateChange, SuspendEnforcement
from sluicegate.proxy.state.suspension import Suspension, SuspensionScope

MAX_SUSPENSIONS = 10_000
"""The number of suspensions that are kept.

Proxies write at most a few hundred, so a larger number comes from another writer.
"""


class StateFull(Exception):
    """A change would exceed the number of suspensions that are kept."""


@dataclass(frozen=True, slots=True)
class AgreedState:
    """The state before the record at `offset`, which is the next one to be applied."""

    offset: int = 0
    suspensions: tuple[Suspension, ...] = ()

    def skipping(self, offset: int) -> "AgreedState":
        """Return the state after the record at `offset` if that record changes nothing."""
        return replace(self, offset=offset + 1)

    def after(self, change: StateChange, offset: int) -> "AgreedState":
        """Return the state after the change at `offset`. Raises StateFull."""
        operation = change.operation
        kept = [each for each in self.suspensions if each.until_ms > change.time_ms]
        match operation:
            case ResumeEnforcement(None):
                kept = []
            case ResumeEnforcement(topic) | SuspendEnforcement(topic):
                kept = [each for each in kept if each.topic != topic]
        if isinstance(operation, SuspendEnforcement):
            if len(kept) >= MAX_SUSPENSIONS:
                raise StateFull
            actor = str(change.actor)
            kept.append(
                Suspension(operation.topic, operation.reason, operation.until_ms, SuspensionScope.CLUSTER, actor)
            )
        return AgreedState(offset + 1, tuple(kept))
