"""Counts and logs failures of the services on which rules depend: schema registries and the rules process.

Reports come from any thread and quote nothing that a registry or a client has sent.
"""

from collections.abc import Hashable

import structlog

from sluicegate.proxy.reporting.logs.aggregation import OnceAMinute
from sluicegate.proxy.reporting.logs.exception_text import fault_text, place_of
from sluicegate.proxy.reporting.metrics.counters import Counters

_REGISTRY_ADVICE = (
    "cached schemas stay in use; batches that need others are rejected with a retriable error, unless their rule's "
    "on_outage sets another outcome; start the registry, or correct its url or login"
)
_CHANGED_ADVICE = (
    "the new schema applies; if the registry was rebuilt or restored, earlier records name the wrong schema, so "
    "consumers cannot read them"
)
_ABSENT_ADVICE = "records that name it are rejected; restore it in the registry, or register it again"
_LIMIT_ADVICE = "its records are rejected; if they are valid, simplify the rule or the schema, or raise the limit"
_RESTART_ADVICE = "the process is restarted; a batch that was using it gets the outcome of its rule's on_outage"


class RegistryReports:
    """One process's reports about its schema registries."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        # The calling threads have no structlog context, so the worker's index is bound here.
        self._log = structlog.get_logger("sluicegate.registry").bind(**structlog.contextvars.get_contextvars())
        self._faults = OnceAMinute()

    def failed(self, registry: str) -> None:
        """Count a failed request. The responses to producers contain the reason."""
        self._counters.registry_failures[registry] += 1

    def backoff_started(self, registry: str, failures: int, reason: str) -> None:
        """Count and log that requests to the registry are now retried at growing intervals."""
        self._counters.registry_backoffs[registry] += 1
        self._log.warning(
            "schema registry backoff started",
            registry=registry,
            failures=failures,
            reason=reason,
            advice=_REGISTRY_ADVICE,
        )

    def recovered(self, registry: str, seconds: float) -> None:
        """Log that a registry responds again after `seconds` of failures."""
        self._log.info("schema registry recovered", registry=registry, failed_for_seconds=round(seconds, 1))

    def changed(self, registry: str, schema_id: str, *, is_absent: bool) -> None:
        """Log that an id has a different schema than before, or none."""
        self._log.warning(
            "schema of an id removed" if is_absent else "schema of an id changed",
            registry=registry,
            schema=schema_id,
            advice=_ABSENT_ADVICE if is_absent else _CHANGED_ADVICE,
        )

    def count_encrypted(self, registry: str, part: str) -> None:
        """Count a record whose value is encrypted in whole or in part."""
        self._counters.encrypted_records[registry, part] += 1

    def fault(self, registry: str, error: Exception) -> None:
        """Count and log an internal error during a request to the registry."""
        self._counters.internal_errors["outage"] += 1
        times = self._faults.due((registry, place_of(error)))
        if times is not None:
            self._log.error(
                "internal error, schema registry request failed",
                registry=registry,
                times=times,
                fault=fault_text(error),
            )


class RulesReports:
    """One process's reports about its rules process."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        # The reporting thread has no structlog context, so the worker's index is bound here.
        self._log = structlog.get_logger("sluicegate.rules").bind(**structlog.contextvars.get_contextvars())
        self._due = OnceAMinute()

    def evaluated(self, outcome: str) -> None:
        """Count an evaluation or a compilation by its outcome."""
        self._counters.rule_evaluations[outcome] += 1

    def limit_exceeded(self, client: Hashable, limit: str, kind: str) -> None:
        """Count and log that a client exceeded `limit` (a configuration key) with a rule of this kind."""
        self._counters.limits_reached[limit] += 1
        times = self._due.due((client, limit))
        if times is not None:
            address, principal = client if isinstance(client, tuple) else (None, None)
            self._log.warning(
                "rules process limit exceeded",
                address=address,
                principal=principal,
                limit=limit,
                rule_kind=kind,
                times=times,
                advice=_LIMIT_ADVICE,
            )

    def replaced(self, reason: str) -> None:
        """Count and log a restart of the rules process that was not caused by a limit."""
        self._counters.rules_process_restarts += 1
        times = self._due.due(reason)
        if times is not None:
            self._log.error("rules process ended", reason=reason, times=times, advice=_RESTART_ADVICE)


class SurveyReports(RulesReports):
    """One process's reports about the rules process of its surveys. No client causes these evaluations."""

    def evaluated(self, outcome: str) -> None:
        return

    def limit_exceeded(self, client: Hashable, limit: str, kind: str) -> None:
        return
