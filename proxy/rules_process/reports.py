"""Events of the rules process that are counted and logged."""

from collections.abc import Hashable
from enum import StrEnum
from typing import Protocol


class Evaluated(StrEnum):
    """How an evaluation or a compilation ended."""

    DONE = "done"
    OVER_SECONDS = "limits.rule_cpu_seconds"
    OVER_MEMORY = "limits.rule_memory_bytes"
    OUTAGE = "outage"


class RulesReports(Protocol):
    """Called from any thread."""

    def evaluated(self, outcome: str) -> None:
        """`how`: of Evaluated."""

    def limit_exceeded(self, client: Hashable, limit: str, kind: str) -> None:
        """A client has exhausted a limit with a rule of this kind, and waits for others for a while."""

    def replaced(self, reason: str) -> None:
        """The process has ended by no fault of what it was asked, and is started again."""


class NoRulesReports:
    """Ignores all events."""

    def evaluated(self, outcome: str) -> None:
        return

    def limit_exceeded(self, client: Hashable, limit: str, kind: str) -> None:
        return

    def replaced(self, reason: str) -> None:
        return
