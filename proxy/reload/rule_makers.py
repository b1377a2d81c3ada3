"""Creates the rules of each configuration. Connections to registries and the rules process survive reloads."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from sluicegate.config.files.source import SchemaFile
from sluicegate.config.limits import Limits
from sluicegate.config.loading import Loaded
from sluicegate.config.registries import Registry
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_compiler import REGISTRY_KINDS, RulesProcessCompiler
from sluicegate.proxy.registry.schema_files import SchemaFiles
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.proxy.reload.config_check import check_policies
from sluicegate.proxy.reporting.logs.service_reports import RegistryReports, RulesReports
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.rules_process.rule_limits import RuleLimits
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.scheduling.wait_budget import WaitBudget


class RuleMakers:
    """Creates rules for one process. `counters` counts requests to registries and evaluations in the rules process."""

    def __init__(self, wait_budget: WaitBudget, counters: Counters, limits: Limits) -> None:
        self._process = RulesProcess(
            RuleLimits(limits.rule_cpu_seconds, limits.rule_memory_bytes), wait_budget, RulesReports(counters)
        )
        self.registries = Registries(
            wait_budget, RegistryReports(counters), compiler=RulesProcessCompiler(self._process)
        )

    def for_registries(
        self, registries: Mapping[str, Registry], schemas: Mapping[Path, SchemaFile] = MappingProxyType({})
    ) -> SchemaRules:
        """Return the rule maker for one configuration.

        Closes registries that only the previous configuration names. `schemas` contains schema files that are already
        known, which are not read again.
        """
        if registries:
            self._process.prepare(REGISTRY_KINDS)
        return SchemaRules(self.registries.by_name(registries), self._process, SchemaFiles(dict(schemas)))

    def check(self, loaded: Loaded) -> None:
        """Check a configuration's policies before its rules are created. Raises ConfigError."""
        check_policies(loaded, self._process)

    @property
    def pid(self) -> int | None:
        """The rules process's id, or None if it is not running."""
        return self._process.pid

    def close(self) -> None:
        """End the rules process and close the registries. Rules that need the process report an outage afterwards."""
        self._process.close()
        self.registries.by_name({})
