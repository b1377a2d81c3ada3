"""How schema registries are, counted and said in the log."""

import structlog

from sluicegate.proxy.reporting.logs.exception_text import fault_text, place_of
from sluicegate.proxy.reporting.metrics.counters import Tally
from sluicegate.proxy.reporting.once_a_minute import OnceAMinute

_ADVICE = "until it answers, rules that need a schema not known yet do what their on_outage says"


class RegistryReports:
    """Of one process; called from any thread. Nothing that a registry has sent is in what it is told."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        # Those who ask are threads, to which nobody else says which worker this is.
        self._log = structlog.get_logger("sluicegate.registry").bind(**structlog.contextvars.get_contextvars())
        self._faults = OnceAMinute()

    def failed(self, registry: str) -> None:
        """A question to it had no answer; producers are told why, in their answers."""
        self._tally.registry_failures[registry] += 1

    def left_alone(self, registry: str, failures: int, reason: str) -> None:
        """From now on it is asked more and more seldom."""
        self._tally.registry_left_alone[registry] += 1
        self._log.warning(
            "a schema registry is left alone", registry=registry, failures=failures, reason=reason, advice=_ADVICE
        )

    def responses_again(self, registry: str, seconds: float) -> None:
        """It had been left alone."""
        self._log.info("a schema registry answers again", registry=registry, failed_for_seconds=round(seconds, 1))

    def fault(self, registry: str, error: Exception) -> None:
        """Asking it failed by a fault of our own."""
        self._tally.internal_errors["as an outage"] += 1
        times = self._faults.due((registry, place_of(error)))
        if times is not None:
            self._log.error(
                "a fault of sluicegate's own: a schema registry could not be asked",
                registry=registry,
                times=times,
                fault=fault_text(error),
            )
