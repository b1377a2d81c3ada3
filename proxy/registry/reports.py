"""Who is told how registries are."""

from typing import Protocol


class Reports(Protocol):
    """Called from any thread."""

    def failed(self, registry: str) -> None:
        """A question to it had no answer."""

    def left_alone(self, registry: str, failures: int, reason: str) -> None:
        """It failed so often in a row that it is asked more and more seldom."""

    def responses_again(self, registry: str, seconds: float) -> None:
        """It does, so long after the first of these failures."""

    def fault(self, registry: str, error: Exception) -> None:
        """Asking it failed by a fault of our own."""


class NobodyIsTold:
    """For who asks once and sees for itself."""

    def failed(self, registry: str) -> None:
        return

    def left_alone(self, registry: str, failures: int, reason: str) -> None:
        return

    def responses_again(self, registry: str, seconds: float) -> None:
        return

    def fault(self, registry: str, error: Exception) -> None:
        return
