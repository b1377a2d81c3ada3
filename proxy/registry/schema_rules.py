"""Creates rules from the configuration's schemas, expressions and entry points."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import time_ns
from typing import Any, Final

from sluicegate.config.content_keys import Schema
from sluicegate.config.values.password import Password
from sluicegate.proxy.registry.compile_cost import held_seconds
from sluicegate.proxy.registry.schema_files import SchemaFiles
from sluicegate.proxy.rules_process.evaluator import compile_specification
from sluicegate.proxy.rules_process.messages import FORMATS, EvaluatorKind, Specification
from sluicegate.proxy.rules_process.protoc import OWN_NAME, descriptor_set_of
from sluicegate.proxy.rules_process.rule_limits import TooCostly
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.rules_process.stoppable import StoppableContent, StoppableRule
from sluicegate.validation.rules.content_rules import content_rule
from sluicegate.validation.rules.from_keys import InlineRules
from sluicegate.validation.rules.protobuf.constraints import check_installed
from sluicegate.validation.rules.rule import Outage, RecordRule, Side
from sluicegate.validation.rules.schemas.content import Content, Formats, SchemaLanguage, SchemaUnusable
from sluicegate.validation.rules.schemas.registered_schema import HasRegisteredSchema, Schemas, SubjectName
from sluicegate.validation.rules.schemas.registry_conditions import MeetsConditions
from sluicegate.validation.rules.schemas.rules_inside_schemas import MeetsRulesInside
from sluicegate.validation.rules.schemas.schema_constraints import MeetsConstraints
from sluicegate.validation.rules.schemas.schema_expression import TrueOfSchema, check_syntax, json_schema_of
from sluicegate.validation.rules.schemas.schema_file import Envelope, FollowsSchema

# Schemas that are larger, or may hold the interpreter lock longer, are first compiled in the rules process. If that
# takes more CPU time than _CHEAP_SECONDS, this process does not compile them.
_LARGE_BYTES = 256 << 10
_HELD_SECONDS = 0.05
_CHEAP_SECONDS = 0.1
_LANGUAGES: Final = {
    "json": SchemaLanguage.JSON,
    "avro": SchemaLanguage.AVRO,
    "protobuf": SchemaLanguage.PROTOBUF,
    None: None,
}
_KINDS: Final = {"json": EvaluatorKind.JSON, "avro": EvaluatorKind.AVRO, "protobuf": EvaluatorKind.PROTOBUF}


class SchemaRules(InlineRules):
    """Creates the rules of one configuration.

    Each known schema is compiled once. `registries` maps configured names to registries. Rules that are not known to be
    cheap run in `process`. If `process` is None, all rules run inline. `files` reads schemas.
    """

    def __init__(
        self,
        registries: Mapping[str, Schemas],
        process: RulesProcess | None = None,
        files: SchemaFiles | None = None,
    ) -> None:
        self._registries = registries
        self._process = process
        self._files = files or SchemaFiles({})
        self._contents: dict[Schema, Content] = {}

    def of_schema(self, schema: Schema, side: Side) -> RecordRule:
        """Create a schema rule. Raises SchemaUnusable."""
        return self._of_known(schema, side) if schema.registry is None else self._of_registry(schema, side)

    def _of_registry(self, schema: Schema, side: Side) -> HasRegisteredSchema:
        assert schema.registry is not None
        schemas = self._registries[schema.registry]
        subject, formats = SubjectName(schema.subject or "topic"), Formats(schema.formats or "assert")
        return HasRegisteredSchema(side, schemas, _LANGUAGES[schema.format], subject, formats)

    def _of_known(self, schema: Schema, side: Side) -> FollowsSchema:
        return FollowsSchema(side, self._known_content(schema), Envelope(schema.envelope or "none"))

    def _known_content(self, schema: Schema) -> Content:
        schema = replace(schema, json_schema=None)
        content = self._contents.get(schema)
        if content is None:
            specification = specification_of(schema, self._files)
            try:
                content = self._contents[schema] = self._content_of(specification)
            except SchemaUnusable as error:
                if schema.file is None:
                    raise
                raise SchemaUnusable(f"{Path(schema.file).absolute()}: {error}") from error
        return content

    def secret(self, password: Password) -> str:
        """Return a secret, read by `SchemaFiles`. Raises PasswordUnreadable."""
        return self._files.secret_of(password)

    def of_content(self, key: str, side: Side, options: Mapping[str, Any]) -> RecordRule:
        """Create a content rule. A costly rule runs in the rules process."""
        rule = content_rule(key, side, options)
        if not rule.is_costly:
            return rule
        specification = Specification(
            EvaluatorKind.CONTENT_RULE, name=key, options={"side": side.value, "keys": options}
        )
        return self._stoppable(specification, rule)

    def of_expression(self, expression: str) -> RecordRule:
        """Create a rule from a CEL expression. Raises ExpressionUnusable."""
        rule = super().of_expression(expression)
        return self._stoppable(Specification(EvaluatorKind.EXPRESSION, expression.encode()), rule)

    def of_schema_expression(self, expression: str, schema: Schema) -> RecordRule:
        """Create a rule from a CEL expression over values that have a schema. Raises RuleUnusable."""
        if schema.format == "json" and schema.registry is None:
            return self.of_expression(expression)
        if schema.registry is not None:
            check_syntax(expression)
            return TrueOfSchema(expression, self._of_registry(schema, Side.VALUE))
        rule = TrueOfSchema(expression, self._of_known(schema, Side.VALUE))
        rule.compile_for(self._known_content(schema))
        return rule

    def of_conditions(self, schema: Schema, side: Side) -> RecordRule:
        """Create a rule that checks the conditions that a registry stores with a schema."""
        return MeetsConditions(self._of_registry(schema, side), side, time_ns)

    def of_inline_rules(self, schema: Schema, side: Side) -> RecordRule:
        """Create a rule that checks the rules inside a registry's schemas."""
        return MeetsRulesInside(self._of_registry(schema, side), side, time_ns)

    def of_constraints(self, schema: Schema, side: Side) -> RecordRule:
        """Create a rule that checks a schema's constraints. Raises SchemaUnusable."""
        check_installed()
        if schema.registry is not None:
            return MeetsConstraints(self._of_registry(schema, side), side)
        rule = MeetsConstraints(self._of_known(schema, side), side)
        with suppress(Outage):  # the first record compiles them
            rule.compile_for(self._known_content(schema))
        return rule

    def of_data_as_json(self, schema: Schema, side: Side) -> RecordRule:
        """Create a rule that converts data to JSON and validates it against a JSON Schema.

        Another schema describes the data. Raises SchemaUnusable.
        """
        assert schema.json_schema is not None
        self._known_content(Schema(text=schema.json_schema, format="json"))  # this reports errors in the JSON Schema
        if schema.registry is not None:
            return TrueOfSchema(schema.json_schema, self._of_registry(schema, side), json_schema_of, side)
        rule = TrueOfSchema(schema.json_schema, self._of_known(schema, side), json_schema_of, side)
        rule.compile_for(self._known_content(schema))
        return rule

    def of_entry_point(self, name: str, options: Mapping[str, Any]) -> RecordRule:
        """Create a rule from an entry point. Raises CustomRuleUnusable."""
        rule = super().of_entry_point(name, options)
        return (
            self._stoppable(Specification(EvaluatorKind.CUSTOM_RULE, name=name, options=options), rule)
            if rule.is_slow
            else rule
        )

    def _stoppable(self, specification: Specification, rule: RecordRule) -> RecordRule:
        return rule if self._process is None else StoppableRule(specification, rule, self._process)

    def _content_of(self, specification: Specification) -> Content:
        if self._process is None:
            return _compiled(specification)
        is_short = specification.size <= _LARGE_BYTES and held_seconds(specification) <= _HELD_SECONDS
        is_cheap = is_short or _is_cheap(specification, self._process)
        content = _compiled(specification) if is_cheap else None
        return StoppableContent(specification, content, self._process)


def _compiled(specification: Specification) -> Content:
    """Compile a schema in this process. Raises SchemaUnusable."""
    content = compile_specification(specification)
    assert isinstance(content, Content)
    return content


def _is_cheap(specification: Specification, process: RulesProcess) -> bool:
    """Compile a schema in the rules process, and return whether that was cheap. Raises SchemaUnusable."""
    try:
        return process.compile(specification).seconds <= _CHEAP_SECONDS
    except TooCostly as error:
        raise SchemaUnusable(f"compiling the schema takes {error}") from error
    except Outage as error:
        raise SchemaUnusable(f"the schema is too costly to compile without the rules process: {error}") from error


def specification_of(schema: Schema, files: SchemaFiles | None = None) -> Specification:
    """Create the specification from a schema's text, or from a file that `files` reads. Raises SchemaUnusable."""
    assert schema.format is not None
    if schema.file is None:
        assert schema.text is not None
        if schema.format == "protobuf":
            descriptor_set = descriptor_set_of(OWN_NAME, schema.text, {})
            return Specification(EvaluatorKind.PROTOBUF, descriptor_set, name=schema.message or "")
        text = schema.text.encode()
    else:
        path = Path(schema.file).absolute()
        text = (files or SchemaFiles({})).content_of(path, schema.format == "protobuf")
        if schema.format == "protobuf":
            return Specification(EvaluatorKind.PROTOBUF, text, name=schema.message or "")
        try:
            text.decode()
        except UnicodeDecodeError:
            raise SchemaUnusable(f"{path} is not UTF-8") from None
    has_id = schema.format == "avro" and schema.envelope == Envelope.CONFLUENT.value
    options = {FORMATS: Formats.ANNOTATE} if schema.formats == Formats.ANNOTATE.value else {}
    return Specification(EvaluatorKind.SERIALIZED_AVRO if has_id else _KINDS[schema.format], text, options=options)
