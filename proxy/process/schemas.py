"""What reads schemas for rules that name some: loaded for a configuration with registries, or with a first schema."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sluicegate.config.registries import Registry
from sluicegate.config.value_rules import Schema
from sluicegate.proxy.judgement.patience import Patience
from sluicegate.proxy.reporting.tally import Tally
from sluicegate.validation.rules.from_keys import SchemaRules
from sluicegate.validation.rules.rule import Rule
from sluicegate.validation.rules.side import Side

if TYPE_CHECKING:
    from sluicegate.proxy.registry.registries import Registries


class SchemaReading:
    """Of one process, whatever configurations follow each other. `tally` counts what becomes of questions."""

    def __init__(self, patience: Patience, tally: Tally) -> None:
        self._patience = patience
        self._tally = tally
        self._registries: Registries | None = None

    def rules_of(self, registries: Mapping[str, Registry]) -> SchemaRules:
        """What makes the rules of one configuration's schemas; `registries` are those that it names."""
        if not registries and self._registries is None:
            return _OfFiles()
        from sluicegate.proxy.registry.registries import Registries  # noqa: PLC0415
        from sluicegate.proxy.registry.schema_rules import SchemaRules as Reading  # noqa: PLC0415
        from sluicegate.proxy.reporting.registry_reports import RegistryReports  # noqa: PLC0415

        if self._registries is None:
            self._registries = Registries(self._patience, RegistryReports(self._tally))
        return Reading(self._registries.by_name(registries))


class _OfFiles:
    """Where there is no registry."""

    def __init__(self) -> None:
        self._reading: SchemaRules | None = None

    def __call__(self, schema: Schema, side: Side) -> Rule:
        """Raises SchemaUnusable."""
        if self._reading is None:
            from sluicegate.proxy.registry.schema_rules import SchemaRules as Reading  # noqa: PLC0415

            self._reading = Reading({})
        return self._reading(schema, side)
