"""Events of the rules process that are counted and logged."""

from collections.abc import Hashable
from enum import StrEnum
from typing import Protocol


class EvaluationOutcome(StrEnum):
    """The outcome of an evaluation or a compilation."""

    DONE = "done"
    OVER_SECONDS = "limits.rule_cpu_seconds"
    OVER_MEMORY = "limits.rule_memory_bytes"
    OUTAGE = "outage"


class RulesProcessReports(Protocol):
    """Receives events from any thread."""

    def evaluated(self, outcome: str) -> None:
        """Called when an evaluation or a compilation has ended. `outcome` is a value of EvaluationOutcome."""

    def limit_exceeded(self, client: Hashable, limit: str, kind: str) -> None:
        """Called when a client exceeded a limit with a rule of this kind.

        The client's further evaluations wait for those of other clients.
        """

    def replaced(self, reason: str) -> None:
        """Called when the process ended, idle or not, but not because of a request. It is restarted."""


class NoRulesReports:
    """Ignores all events."""

    def evaluated(self, outcome: str) -> None:
        return

    def limit_exceeded(self, client: Hashable, limit: str, kind: str) -> None:
        return

    def replaced(self, reason: str) -> None:
        return
