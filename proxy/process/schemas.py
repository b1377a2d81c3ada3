"""What makes rules that need more than a record: loaded for a configuration with registries, or with the first one."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluicegate.config.model import Limits
from sluicegate.config.registries import Registry
from sluicegate.config.value_rules import Json, Schema
from sluicegate.proxy.judgement.patience import Patience
from sluicegate.proxy.reporting.tally import Tally
from sluicegate.validation.rules.from_keys import INLINE_RULES, RuleMaker
from sluicegate.validation.rules.rule import Rule
from sluicegate.validation.rules.side import Side

if TYPE_CHECKING:
    from sluicegate.proxy.registry.registries import Registries
    from sluicegate.proxy.registry.schema_rules import SchemaRules
    from sluicegate.proxy.rules_process.rules_process import RulesProcess


class SchemaReading:
    """Of one process, whatever configurations follow each other. `tally` counts what becomes of questions."""

    def __init__(self, patience: Patience, tally: Tally, limits: Limits) -> None:
        self._patience = patience
        self._tally = tally
        self._limits = limits
        self._registries: Registries | None = None
        self._process: RulesProcess | None = None

    def rules_of(self, registries: Mapping[str, Registry]) -> RuleMaker:
        """What makes the rules of one configuration; `registries` are those that it names."""
        return _Maker(self, registries)

    @property
    def has_registries(self) -> bool:
        """Whether those of a configuration before are still there."""
        return self._registries is not None

    def maker_of(self, registries: Mapping[str, Registry]) -> "SchemaRules":
        """The same, with all that it needs."""
        from sluicegate.proxy.registry.registries import Registries  # noqa: PLC0415
        from sluicegate.proxy.registry.schema_compiler import REGISTRY_KINDS, CompilesElsewhere  # noqa: PLC0415
        from sluicegate.proxy.registry.schema_rules import SchemaRules  # noqa: PLC0415
        from sluicegate.proxy.reporting.registry_reports import RegistryReports  # noqa: PLC0415

        process = self._rules_process()
        if self._registries is None:
            reports = RegistryReports(self._tally)
            self._registries = Registries(self._patience, reports, compiler=CompilesElsewhere(process))
        if registries:
            process.prepare(REGISTRY_KINDS)
        return SchemaRules(self._registries.by_name(registries), process)

    def close(self) -> None:
        """End the rules process; rules that need it are out from now on."""
        if self._process is not None:
            self._process.close()

    def _rules_process(self) -> "RulesProcess":
        from sluicegate.proxy.reporting.rules_reports import RulesReports  # noqa: PLC0415
        from sluicegate.proxy.rules_process.rules_process import RuleLimits, RulesProcess  # noqa: PLC0415

        if self._process is None:
            limits = RuleLimits(self._limits.rule_seconds, self._limits.rule_memory)
            self._process = RulesProcess(limits, self._patience, RulesReports(self._tally))
        return self._process


class _Maker:
    """Loads nothing before the first rule that needs it."""

    def __init__(self, reading: SchemaReading, registries: Mapping[str, Registry]) -> None:
        self._reading = reading
        self._registries = registries
        is_needed = registries or reading.has_registries
        self._made: SchemaRules | None = reading.maker_of(registries) if is_needed else None

    def of_schema(self, schema: Schema, side: Side) -> Rule:
        """Raises SchemaUnusable."""
        return self._maker.of_schema(schema, side)

    def of_json(self, side: Side, json: Json) -> Rule:
        """Of what is cheap, inline."""
        maker = INLINE_RULES if json.duplicate_keys == "allow" else self._maker
        return maker.of_json(side, json)

    def of_expression(self, expression: str) -> Rule:
        """Raises ExpressionUnusable."""
        return self._maker.of_expression(expression)

    def of_entry_point(self, name: str, options: Mapping[str, Any]) -> Rule:
        """Raises OwnRuleUnusable."""
        return self._maker.of_entry_point(name, options)

    @property
    def _maker(self) -> "SchemaRules":
        if self._made is None:
            self._made = self._reading.maker_of(self._registries)
        return self._made
