"""Surveys the registries in use every few minutes, and reports unusable schemas as conditions."""

import asyncio
from collections.abc import Sequence

from sluicegate.config.model import Config
from sluicegate.proxy.network.daemon_thread import in_daemon_thread
from sluicegate.proxy.registry.survey import SurveyResult, Surveys
from sluicegate.proxy.rules_process.reports import RulesProcessReports
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status

_EVERY_SECONDS = 600.0
# The interval between surveys while a registry does not respond.
_RETRY_SECONDS = 10.0


class SchemaWatch:
    """Surveys all registries.

    One process of a proxy does this for all workers. `failures` contains the registries that did not respond to the
    last survey, with the reasons.
    """

    def __init__(self, config: Config, status: Status, reports: RulesProcessReports | None = None) -> None:
        """`reports` receives the events of the rules process that the surveys use."""
        self._reports = reports
        self.failures: dict[str, str] = {}
        self._status = status
        self._surveys = Surveys(config, reports)

    def configure(self, config: Config) -> None:
        """Survey a new configuration's registries from the next survey on."""
        self._surveys = Surveys(config, self._reports)

    async def repeat_look_ups(self) -> None:
        """Survey all registries, then wait."""
        self.learn(await in_daemon_thread(self._surveys.survey_all))
        await asyncio.sleep(_RETRY_SECONDS if self.failures else _EVERY_SECONDS)

    def learn(self, results: Sequence[SurveyResult]) -> None:
        """Set the conditions according to the results.

        A registry whose survey was incomplete keeps its conditions.
        """
        self.failures = {each.registry: each.unreachable for each in results if each.unreachable}
        for surveyed in results:
            for unusable in surveyed.unusable:
                subject = f"{surveyed.registry}: {unusable.subject}"
                self._status.begin(Condition.SCHEMA_UNUSABLE, f"registry {surveyed.registry}: {unusable}", subject)
        if all(surveyed.is_complete for surveyed in results):
            self._status.set_all(
                Condition.SCHEMA_UNUSABLE,
                {
                    f"{surveyed.registry}: {each.subject}": f"registry {surveyed.registry}: {each}"
                    for surveyed in results
                    for each in surveyed.unusable
                },
            )
