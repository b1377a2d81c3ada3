"""The limits of an evaluation in the rules process, and the error when one is exceeded."""

from dataclasses import dataclass

from sluicegate.proxy.rules_process.reports import EvaluationOutcome


@dataclass(frozen=True, slots=True)
class RuleLimits:
    """The limits of the rules process.

    `seconds` is the CPU time for a request, and `memory` the number of bytes for the process beyond its libraries.
    """

    seconds: float
    memory: int

    def describe_excess(self, how: EvaluationOutcome) -> str:
        """Describe the resource use that exceeds a limit."""
        if how is EvaluationOutcome.OVER_MEMORY:
            return f"more than {how.value} ({self.memory} bytes)"
        return f"more than {how.value} ({self.seconds:g} s of CPU time for a request)"


class TooCostly(Exception):
    """An evaluation or a compilation exceeded a limit, which the message names.

    `is_memory` is true for the memory limit.
    """

    def __init__(self, text: str, is_memory: bool = False) -> None:
        super().__init__(text)
        self.is_memory = is_memory
