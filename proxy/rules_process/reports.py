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
        """An evaluation or a compilation has ended; `outcome` is a value of Evaluated."""

    def limit_exceeded(self, client: Hashable, limit: str, kind: str) -> None:
        """A client exceeded a limit with a rule of this kind; its further evaluations wait for those of others."""

    def replaced(self, reason: str) -> None:
        """The process ended through no fault of a request, idle or not, and is started again."""


class NoRulesReports:
    """Ignores all events."""

    def evaluated(self, outcome: str) -> None:
        return

    def limit_exceeded(self, client: Hashable, limit: str, kind: str) -> None:
        return

    def replaced(self, reason: str) -> None:
        return
