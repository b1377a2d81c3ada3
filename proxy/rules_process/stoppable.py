"""Schemas and rules that run in this process if they are known to be cheap, and otherwise in the rules process."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, ParamSpec

from sluicegate.proxy.rules_process.messages import (
    CHANGES,
    FORMATS,
    JSON_ENCODING,
    EvaluatorKind,
    RulesOperation,
    Specification,
    fields_of,
)
from sluicegate.proxy.rules_process.rule_limits import TooCostly
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.validation.rules.custom_rule import place_of
from sluicegate.validation.rules.native.questions import BytesQuestion
from sluicegate.validation.rules.rule import (
    LIBRARY_FAULTS,
    UNBOUNDED,
    LimitedSteps,
    Outage,
    RecordRule,
    RuledRecord,
    SchemaError,
    StepBudget,
    TooManySteps,
    header_names_of,
)
from sluicegate.validation.rules.schemas.conditions import Clock, SchemaCondition
from sluicegate.validation.rules.schemas.content import (
    Content,
    ExpressionOfSchema,
    Formats,
    HasExpressions,
    HasFormats,
    HasJsonEncoding,
    HasNativeContentCheck,
    ReadAsJson,
    SchemaUnusable,
)
from sluicegate.validation.rules.schemas.field_tags import FieldChange
from sluicegate.validation.rules.schemas.inline_rules import (
    HasInlineRules,
    PlacedRules,
    RulePlace,
    inline_rules_of_text,
    unusable_rules_of,
)

_EXPRESSIONS: Final = {
    EvaluatorKind.JSON: EvaluatorKind.JSON_EXPRESSION,
    EvaluatorKind.AVRO: EvaluatorKind.AVRO_EXPRESSION,
    EvaluatorKind.SERIALIZED_AVRO: EvaluatorKind.AVRO_EXPRESSION,
    EvaluatorKind.PROTOBUF: EvaluatorKind.PROTOBUF_EXPRESSION,
}

Given = ParamSpec("Given")


class StoppableContent:
    """A schema whose evaluation can be stopped.

    `content` is None if the schema was too costly to compile in this process. Then only the rules process compiles it.
    All methods except `ordinary` raise WaitNotAllowed if they may not wait for the rules process.
    """

    def __init__(self, specification: Specification, content: Content | None, process: RulesProcess) -> None:
        self.is_slow = content is None or content.is_slow
        self._specification = specification
        self._content = content
        self._process = process
        self._annotating: StoppableContent | None = None
        self._json_encoded: StoppableContent | None = None

    @property
    def compiled_here(self) -> Content | None:
        """The schema in this process, or None if it is too costly to compile here."""
        return self._content

    def record_name(self, data: bytes) -> str | None:
        """Return the name of the record schema that `data` uses. Raises Outage and SchemaError."""
        if self._content is not None:
            return self._content.record_name(data)
        try:
            return self._evaluated(RulesOperation.RECORD_NAME, data)
        except TooCostly as error:
            raise SchemaError(f"finding the record's name takes {error}") from error

    def ordinary(self, behind: int) -> BytesQuestion | None:
        """Return the native check for this schema, which is always cheap, or None if there is none."""
        content = self._content
        return content.ordinary(behind) if isinstance(content, HasNativeContentCheck) else None

    def annotating_formats(self, budget: StepBudget) -> Content:
        """Return the schema with formats as annotations (`HasFormats`)."""
        given, content = self._specification, self._content
        if given.kind is not EvaluatorKind.JSON:
            return self
        if self._annotating is None:
            here = content.annotating_formats(budget) if isinstance(content, HasFormats) else None
            options = {**given.options, FORMATS: Formats.ANNOTATE}
            specification = Specification(given.kind, given.text, given.references, given.name, options)
            self._annotating = StoppableContent(specification, here, self._process)
        return self._annotating

    def json_encoded(self) -> Content:
        """Return the schema for data in JSON encoding (`HasJsonEncoding`).

        Schemas other than Avro are returned unchanged.
        """
        given, content = self._specification, self._content
        if given.kind is not EvaluatorKind.SERIALIZED_AVRO:
            return self
        if self._json_encoded is None:
            here = content.json_encoded() if isinstance(content, HasJsonEncoding) else content
            options = {**given.options, JSON_ENCODING: True}
            specification = Specification(given.kind, given.text, given.references, given.name, options)
            self._json_encoded = StoppableContent(specification, here, self._process)
        return self._json_encoded

    def look_ahead(self, subjects: Sequence[bytes], budget: StepBudget) -> None:
        """Validate together the subjects that need the rules process."""
        content = self._content
        if content is not None:
            subjects = [data for data in subjects if exceeds_limit(content.fault, data, LimitedSteps(budget))]
        self._process.look_ahead(self._specification, RulesOperation.FAULT, subjects)

    def fault(self, data: bytes, budget: StepBudget) -> str | None:
        """Return the fault in `data`, or None. Raises Outage and SchemaError."""
        if self._content is not None:
            with suppress(TooManySteps):
                return self._content.fault(data, LimitedSteps(budget))
        budget.spend(UNBOUNDED)
        try:
            return self._evaluated(RulesOperation.FAULT, data)
        except TooCostly as error:
            return f"is {too_costly(error)}"

    def description(self, data: bytes, budget: StepBudget) -> str | None:
        if self._content is not None:
            with suppress(TooManySteps):
                return self._content.description(data, LimitedSteps(budget))
        budget.spend(UNBOUNDED)
        try:
            return self._evaluated(RulesOperation.DESCRIPTION, data)
        except (TooCostly, Outage, SchemaError):
            return None

    def expression(self, text: str) -> ExpressionOfSchema:
        """Create an expression over values of this schema. Raises RuleUnusable."""
        content = self._content
        # If the schema was cheap to compile here, its expressions are cheap too.
        inline = content.expression(text) if isinstance(content, HasExpressions) else None
        return self._stoppable(text, inline)

    def condition(self, condition: SchemaCondition, now: Clock) -> ExpressionOfSchema:
        """Convert a registry's condition on values of this schema to an expression. Raises RuleUnusable."""
        content = self._content
        inline = content.condition(condition, now) if isinstance(content, HasExpressions) else None
        return self._stoppable(condition, inline)

    def constraints(self) -> ExpressionOfSchema | None:
        """Compile the schema's constraints in the rules process. Raises SchemaUnusable, Outage and WaitNotAllowed."""
        given = self._specification
        if given.kind is not EvaluatorKind.PROTOBUF:
            return None
        options = {**given.options, "schema": given.kind}
        specification = Specification(
            EvaluatorKind.PROTOBUF_CONSTRAINTS, given.text, given.references, given.name, options
        )
        try:
            self._process.compile(specification)
        except TooCostly as error:
            raise SchemaUnusable(f"compiling the constraints takes {error}") from error
        return StoppableExpression(specification, None, self._process)

    def inline_rules(self, changes: Sequence[FieldChange], now: Clock) -> ExpressionOfSchema | None:
        """Return the rules inside the schema, or None if it is known to have none. Raises RuleUnusable."""
        content, given = self._content, self._specification
        inline = content.inline_rules(changes, now) if isinstance(content, HasInlineRules) else None
        if content is not None and inline is None:
            return None
        options = {**given.options, "schema": given.kind, CHANGES: tuple(changes)}
        specification = Specification(EvaluatorKind.INLINE_RULES, given.text, given.references, given.name, options)
        return StoppableExpression(specification, inline, self._process)

    def placed_rules(self, changes: Sequence[FieldChange] = ()) -> PlacedRules:
        """Return the rules inside the schema with their places.

        The result is empty for a Protobuf schema that is too costly to compile here. In other such schemas the rules
        have no places, so a change of fields may affect each of them.
        """
        content, given = self._content, self._specification
        if content is not None:
            return content.placed_rules(changes) if isinstance(content, HasInlineRules) else PlacedRules(())
        texts = (given.text, *dict(given.references).values())
        rules = tuple(rule for text in texts for rule in inline_rules_of_text(text))
        return PlacedRules([RulePlace(None, rules, is_uncertain=bool(changes))])

    def follows_as_json(self, json_schema: str) -> ExpressionOfSchema:
        """Create the condition that values match a JSON Schema after conversion to JSON. Raises RuleUnusable."""
        content, given = self._content, self._specification
        inline = content.follows_as_json(json_schema) if isinstance(content, ReadAsJson) else None
        options = {**given.options, "schema": given.kind, "json_schema": json_schema}
        specification = Specification(EvaluatorKind.AS_JSON, given.text, given.references, given.name, options)
        return StoppableExpression(specification, inline, self._process)

    def _stoppable(self, expression: str | SchemaCondition, inline: ExpressionOfSchema | None) -> ExpressionOfSchema:
        given = self._specification
        options = {**given.options, "expression": expression, "schema": given.kind}
        specification = Specification(_EXPRESSIONS[given.kind], given.text, given.references, given.name, options)
        return StoppableExpression(specification, inline, self._process)

    def _evaluated(self, operation: RulesOperation, data: bytes) -> str | None:
        try:
            return self._process.ask(self._specification, operation, data)
        except SchemaUnusable as error:
            raise SchemaError(str(error)) from error


class StoppableRule:
    """A rule that may take long for some or all records."""

    def __init__(self, specification: Specification, rule: RecordRule, process: RulesProcess) -> None:
        self.parts = rule.parts
        self.header_names = header_names_of(rule)
        self.is_slow = rule.is_slow
        evaluation = StoppableExpression(specification, rule, process)
        self.fault = evaluation.fault
        self.look_ahead = evaluation.look_ahead
        self.description = evaluation.description


class StoppableExpression:
    """A rule, or an expression over a schema. `inline` is None if only the rules process compiles it."""

    def __init__(self, specification: Specification, inline: ExpressionOfSchema | None, process: RulesProcess) -> None:
        self._specification = specification
        self._inline = inline
        self._process = process

    def compile(self) -> str:
        """Compile the rule now instead of at the first record.

        Return which rules inside a schema are unusable, or an empty string. Raises SchemaUnusable, Outage and
        WaitNotAllowed.
        """
        if self._inline is not None:
            return unusable_rules_of(self._inline)
        try:
            return self._process.compile(self._specification).words or ""
        except TooCostly as error:
            raise SchemaUnusable(f"the evaluation takes {error}") from error

    def fault(self, record: RuledRecord) -> str | None:
        """Return the fault, or None if there is none.

        Raises Outage and SchemaError, and WaitNotAllowed if this thread may not wait.
        """
        if self._inline is not None:
            try:
                return with_limit(self._inline.fault, record)
            except TooManySteps:
                pass
            except LIBRARY_FAULTS as error:
                raise SchemaError(f"the evaluation failed ({type(error).__name__} at {place_of(error)})") from error
        record.budget.spend(UNBOUNDED)
        try:
            return self._process.ask(self._specification, RulesOperation.FAULT, fields_of(record))
        except TooCostly as error:
            return f"the record is {too_costly(error)}"
        except SchemaUnusable as error:
            raise SchemaError(str(error)) from error

    def look_ahead(self, records: Sequence[RuledRecord], _budget: StepBudget) -> None:
        """Evaluate together the records that need the rules process."""
        inline = self._inline
        if inline is not None:
            records = [each for each in records if exceeds_limit(with_limit, inline.fault, each)]
        self._process.look_ahead(self._specification, RulesOperation.FAULT, map(fields_of, records))

    def description(self, record: RuledRecord) -> str | None:
        if self._inline is not None:
            with suppress(TooManySteps):
                return with_limit(self._inline.description, record)
        record.budget.spend(UNBOUNDED)
        try:
            return self._process.ask(self._specification, RulesOperation.DESCRIPTION, fields_of(record))
        except (TooCostly, Outage, SchemaUnusable):
            return None


def with_limit(evaluate: Callable[[RuledRecord], str | None], record: RuledRecord) -> str | None:
    """Return the result of a rule's method if it takes at most INLINE_STEPS steps. Raises TooManySteps."""
    budget = record.budget
    record.budget = LimitedSteps(budget)
    try:
        return evaluate(record)
    finally:
        record.budget = budget


def exceeds_limit(evaluate: Callable[Given, object], *given: Given.args, **named: Given.kwargs) -> bool:
    """Return whether an evaluation raises TooManySteps.

    Other errors are ignored, because the evaluation that follows raises them again.
    """
    try:
        evaluate(*given, **named)
    except TooManySteps:
        return True
    except (Outage, SchemaError, *LIBRARY_FAULTS):
        return False
    return False


def too_costly(error: TooCostly) -> str:
    """Return the end of a sentence that begins with the subject and "is"."""
    return f"too costly to validate: the evaluation takes {error}; send smaller records, or have the limit raised"
