"""What the changes of the state topic amount to, applied one after another."""

from dataclasses import dataclass, replace

from sluicegate.proxy.state.change import ResumeEnforcement, StateChange, SuspendEnforcement
from sluicegate.proxy.state.suspension import Suspension, SuspensionScope

MAX_SUSPENSIONS = 10_000
"""Suspensions that are kept. Proxies write at most some hundred; more come from somebody else who may write."""


class StateFull(Exception):
    """A change would exceed the suspensions that are kept."""


@dataclass(frozen=True, slots=True)
class AgreedState:
    """The state before the record at `offset`, the next one to be applied."""

    offset: int = 0
    suspensions: tuple[Suspension, ...] = ()

    def skipping(self, offset: int) -> "AgreedState":
        """Return the state after the record at `offset`, which changes nothing."""
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
