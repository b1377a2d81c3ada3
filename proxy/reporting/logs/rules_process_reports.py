"""How the rules process is, counted and logged."""

from collections.abc import Hashable

import structlog

from sluicegate.proxy.reporting.metrics.counters import Tally
from sluicegate.proxy.reporting.once_a_minute import OnceAMinute

_ADVICE = "its records are rejected; if they are right, simplify the rule or the schema, or raise the limit"
_OUTAGE_ADVICE = "it is started again; batches that needed it are handled by on_outage of their rule"


class RulesReports:
    """Of one process; called from any thread. Nothing that a client has sent is in what it is given."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        # The thread that reports does not know which worker this is.
        self._log = structlog.get_logger("sluicegate.rules").bind(**structlog.contextvars.get_contextvars())
        self._due = OnceAMinute()

    def evaluated(self, how: str) -> None:
        """An evaluation, or a compilation, has ended."""
        self._tally.rule_evaluations[how] += 1

    def over_budget(self, client: Hashable, limit: str, kind: str) -> None:
        """A client has exhausted a limit of the rules process."""
        self._tally.limits_reached[limit] += 1
        times = self._due.due((client, limit))
        if times is not None:
            address, principal = client if isinstance(client, tuple) else (None, None)
            self._log.warning(
                "a client exhausted a limit of the rules process",
                address=address,
                principal=principal,
                limit=limit,
                rule_kind=kind,
                times=times,
                advice=_ADVICE,
            )

    def replaced(self, reason: str) -> None:
        """The rules process has ended, and not because of a limit."""
        self._tally.rules_process_restarts += 1
        times = self._due.due(reason)
        if times is not None:
            self._log.error("the rules process ended", reason=reason, times=times, advice=_OUTAGE_ADVICE)
