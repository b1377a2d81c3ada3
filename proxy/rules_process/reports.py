"""What is counted and logged of the rules process."""

from collections.abc import Hashable
from enum import Enum
from typing import Protocol

from sluicegate.proxy.rules_process.specification import Kind


class Evaluated(Enum):
    """How an evaluation ended."""

    DONE = "done"
    OVER_SECONDS = "limits.rule_seconds"
    OVER_MEMORY = "limits.rule_memory"
    OUTAGE = "outage"


class RulesReports(Protocol):
    """Called from any thread."""

    def evaluated(self, how: Evaluated) -> None:
        """One evaluation, or one compilation, has ended."""

    def over_budget(self, client: Hashable, limit: Evaluated, kind: Kind) -> None:
        """A client has exhausted a limit, and waits for others for a while."""

    def replaced(self, reason: str) -> None:
        """The process has ended by no fault of what it was asked, and is started again."""


class NothingIsReported:
    """For tests."""

    def evaluated(self, how: Evaluated) -> None:
        return

    def over_budget(self, client: Hashable, limit: Evaluated, kind: Kind) -> None:
        return

    def replaced(self, reason: str) -> None:
        return
