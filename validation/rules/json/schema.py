"""Checks content against a JSON Schema (drafts 4 to 2020-12), including formats. Never fetches references."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any, Final

from sluicegate.config.values.extras import RULES_EXTRA
from sluicegate.validation.rules.cel.bytes_values import true_of_bytes
from sluicegate.validation.rules.cel.fields import TrueOfFields
from sluicegate.validation.rules.cel.inline_rules import InlinePrograms, MeetsInlineRules
from sluicegate.validation.rules.cel.json_messages import JsonMessages
from sluicegate.validation.rules.cel.rule import IsTrue, MeetsCondition
from sluicegate.validation.rules.json.cel_fields import ROOT, JsonFields
from sluicegate.validation.rules.json.cost import JsonSchemaCost
from sluicegate.validation.rules.json.dialects import SeparatePatterns, translated
from sluicegate.validation.rules.json.draft_3 import METASCHEMA, METASCHEMA_NAME
from sluicegate.validation.rules.json.error_text import ErrorTexts
from sluicegate.validation.rules.json.exact import exact_number, exact_value, without_surrogate_halves
from sluicegate.validation.rules.json.inline_rules import JsonRuledValues
from sluicegate.validation.rules.json.plan import check_of_plan, has_short_hash_runs, json_schema_plan
from sluicegate.validation.rules.json.property_places import accepting_encrypted, properties_of
from sluicegate.validation.rules.json.rule_places import places_of_json
from sluicegate.validation.rules.json.text import WELL_FORMED, fault_in, is_unusual, words_for
from sluicegate.validation.rules.native.questions import BytesQuestion, JsonSchemaQuestion
from sluicegate.validation.rules.rule import UNBOUNDED, StepBudget
from sluicegate.validation.rules.schemas.changed_fields import ChangedFields
from sluicegate.validation.rules.schemas.conditions import (
    Clock,
    NotEvaluated,
    SchemaCondition,
    reads_changed,
    unless_read,
)
from sluicegate.validation.rules.schemas.content import ExpressionOfSchema, Formats, SchemaUnusable
from sluicegate.validation.rules.schemas.field_tags import FieldChange
from sluicegate.validation.rules.schemas.follows_as_json import FollowsAsJson, UnchangedJsonForm
from sluicegate.validation.rules.schemas.inline_rules import PlacedRules

MAX_DEPTH = 255
"""The maximum depth of values that jsonschema-rs compares."""

# The nesting limit of orjson.
_READABLE_DEPTH = 1024
# Well below the limit of Python's own reader, which reads unusual JSON.
_EXACT_DEPTH = 500
_DOES_NOT_FOLLOW = "does not match its JSON Schema"
# About 5 ms.
_EXPLANATION_STEPS = 50_000
# Well-formed JSON is read natively, in at most about 5 ns per byte.
_BYTES_OF_STEP = 20
# With any of these keywords, a value may take far longer than its size suggests.
_SLOW_KEYWORDS: Final = frozenset(
    {"pattern", "patternProperties", "uniqueItems", "contains", "oneOf", "anyOf", "allOf", "not", "if", "format"}
    | {"$ref", "$dynamicRef", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems", "dependentSchemas"}
)
_REGEX_BYTES = 10 << 20
_MOST_PATH = 200  # characters of a path in a schema that a message names
# A pattern with look-around or back-references is limited only by time. If a step limit ended the match, its verdict
# would be false, and `not` would turn it into true.
_MOST_BACKTRACKS = 1 << 40


class JsonSchemaContent:
    """A check that bytes are strict JSON that is valid against a schema.

    The explanation is the first error's path and keyword.
    """

    def __init__(
        self,
        schema: Any,
        references: Mapping[str, Any],
        formats: Formats = Formats.ASSERT,
        encrypted: Sequence[FieldChange] = (),
    ) -> None:
        """Create a check.

        `encrypted` contains the rules that encrypt fields; the schema no longer restricts these fields.
        """
        jsonschema_rs, orjson = _libraries()
        self._annotating = self if formats is Formats.ANNOTATE else None
        self.schema, self.references = schema, references
        self._encrypted = encrypted
        self._loads = orjson.loads
        self._unreadable = orjson.JSONDecodeError
        schema, references, self._validator, self._backtracks = _compiled(jsonschema_rs, schema, references, formats)
        self._used = schema, references
        self._invalid = jsonschema_rs.ValidationError
        self._is_valid = self._validator.is_valid
        names = frozenset(_properties_of(schema)).union(*map(_properties_of, references.values()))
        self._texts = ErrorTexts(schema, names)
        self.is_slow = any(key in _SLOW_KEYWORDS for key in _keys_of(schema))
        self._cost = JsonSchemaCost(schema, references)
        plan = json_schema_plan(schema)
        self._plan = plan if plan is not None and has_short_hash_runs(plan) else None
        self._follows = check_of_plan(self._plan)
        title = schema.get("title") if isinstance(schema, dict) else None
        self._title = title if isinstance(title, str) else None

    def record_name(self, _data: bytes) -> str | None:
        return self._title

    def annotating_formats(self, budget: StepBudget) -> "JsonSchemaContent":
        """Return the check with formats as annotations (`HasFormats`)."""
        if self._annotating is None:
            budget.spend(UNBOUNDED)
            self._annotating = JsonSchemaContent(self.schema, self.references, Formats.ANNOTATE, self._encrypted)
        return self._annotating

    def ordinary(self, behind: int) -> BytesQuestion | None:
        """Return the whole check if the schema has a plan, otherwise None."""
        return None if self._plan is None else BytesQuestion(schemas=(JsonSchemaQuestion(self._plan, behind),))

    def fault(self, data: bytes, budget: StepBudget) -> str | None:
        if self._plan is not None:
            budget.spend(len(data) // _BYTES_OF_STEP + 1)
            if self._follows(data):
                return None
        is_exact = is_unusual(data)
        self._spend(data, is_exact, budget)
        try:
            value = self._read(data, is_exact)
        except self._unreadable:
            return f"is {words_for(fault_in(data, _EXACT_DEPTH if is_exact else _READABLE_DEPTH))}"
        try:
            return None if self._is_valid(value) else _DOES_NOT_FOLLOW
        except ValueError:  # jsonschema-rs has no other limit
            return f"is JSON nested more than {MAX_DEPTH} levels deep"

    def _spend(self, data: bytes, is_exact: bool, budget: StepBudget) -> None:
        budget.spend(UNBOUNDED if self._backtracks or is_exact else self._cost.steps(data))

    @property
    def encrypted_names(self) -> frozenset[str]:
        """Return the names of the properties that serializers encrypt."""
        return self._changed_by(self._encrypted).names

    def expression(self, text: str) -> ExpressionOfSchema:
        """Return an expression over the JSON, which has no types. Raises ExpressionUnusable."""
        return unless_read(self._changed_by(self._encrypted), text, IsTrue(text))

    def condition(self, condition: SchemaCondition, now: Clock) -> ExpressionOfSchema:
        """Return a registry's condition on the JSON. Raises RuleUnusable."""
        if condition.is_about_bytes:
            return true_of_bytes(condition, now)
        if condition.changes:
            documents = (self.schema, *self.references.values())
            if reads_changed(condition, chain.from_iterable(map(properties_of, documents))):
                return NotEvaluated()
        if condition.is_about_fields:
            schema, references = self._used
            return TrueOfFields(condition, JsonFields(schema, references, self._validator_for), now)
        return MeetsCondition(condition.expression, JsonMessages(), now)

    def inline_rules(self, changes: Sequence[FieldChange], now: Clock) -> ExpressionOfSchema | None:
        """Return the rules inside the schema. Raises ExpressionUnusable."""
        placed = self.placed_rules(changes)
        programs = InlinePrograms(placed.evaluated)
        if not programs:
            return None
        return MeetsInlineRules(programs, JsonRuledValues(*self._used, placed, self._validator_for), now)

    def placed_rules(self, changes: Sequence[FieldChange] = ()) -> PlacedRules:
        """Return the rules inside the schema, with their places."""
        changed = self._changed_by(changes)
        return PlacedRules(places_of_json(*self._used, changed.names), changed)

    def _changed_by(self, changes: Sequence[FieldChange]) -> ChangedFields:
        schema, references = self._used
        return ChangedFields(changes, chain.from_iterable(map(properties_of, (schema, *references.values()))))

    def _validator_for(self, part: Any) -> Any:
        """Compile a schema that refers to parts of this one. Like Confluent's client, ignores formats."""
        jsonschema_rs, _ = _libraries()
        schema, references = self._used
        options = jsonschema_rs.FancyRegexOptions if self._backtracks else jsonschema_rs.RegexOptions
        retriever = _from({ROOT: schema, **references})
        patterns = options(size_limit=_REGEX_BYTES)
        return jsonschema_rs.validator_for(part, validate_formats=False, retriever=retriever, pattern_options=patterns)

    def follows_as_json(self, json_schema: str) -> ExpressionOfSchema:
        """Return the condition that the JSON is valid against another JSON Schema. Raises SchemaUnusable."""
        encrypted = self._changed_by(self._encrypted).in_json()
        return FollowsAsJson(json_schema_content(json_schema, encrypted=encrypted), self.json_form())

    def json_form(self) -> UnchangedJsonForm:
        """Return the conversion to JSON, which changes nothing."""
        return UnchangedJsonForm()

    def description(self, data: bytes, budget: StepBudget) -> str | None:
        """Return the first error's path and keyword; None if finding it may take more than a few milliseconds."""
        steps = self._cost.explanation_steps(data)
        if steps > _EXPLANATION_STEPS:
            return None
        budget.spend(steps)
        is_exact = is_unusual(data)
        self._spend(data, is_exact, budget)
        try:
            self._validator.validate(self._read(data, is_exact))
        except self._invalid as error:
            return f"{_DOES_NOT_FOLLOW}: {self._texts.text(error)}"
        except ValueError:  # the JSON cannot be read, or is nested too deeply
            return None
        return None

    def _read(self, data: bytes, is_exact: bool) -> Any:
        """Parse JSON. Raises JSONDecodeError, which is a ValueError."""
        if is_exact and fault_in(data, _EXACT_DEPTH) == WELL_FORMED:
            return exact_value(data)
        return self._loads(data)


_OURS: Final = re.compile(r"Resource '.+' is not present in a registry and retrieving it failed: ValueError: ")
_NOT_FOUND: Final = re.compile(r"Resource '(.+)' is not present in a registry and retrieving it failed: No base URI.*")
_WHERE_TO_PUT: Final = (
    r"it refers to \1, which is not among its references; register it as a reference, or put it under $defs"
)
_LIBRARY_TOO_DEEP: Final = "Recursion limit reached"


def json_schema_content(
    text: str, references: Mapping[str, str] | None = None, encrypted: Sequence[FieldChange] = ()
) -> JsonSchemaContent:
    """Compile a schema. Raises SchemaUnusable.

    `references` are the referenced schemas, by their names in the schema. `encrypted` are the rules that encrypt
    fields.
    """
    schema, others = _read(text), {name: _read(other) for name, other in (references or {}).items()}
    if encrypted:
        schema = accepting_encrypted(schema, encrypted)
        others = {name: accepting_encrypted(other, encrypted) for name, other in others.items()}
    return JsonSchemaContent(schema, others, encrypted=encrypted)


def _compiled(
    jsonschema_rs: Any, schema: Any, references: Mapping[str, Any], formats: Formats
) -> tuple[Any, Mapping[str, Any], Any, bool]:
    """Return the compiled schemas, their validator, and whether its patterns backtrack.

    Translates a schema only if it cannot be compiled unchanged. Raises SchemaUnusable.
    """
    linear = jsonschema_rs.RegexOptions(size_limit=_REGEX_BYTES)
    backtracking = jsonschema_rs.FancyRegexOptions(size_limit=_REGEX_BYTES, backtrack_limit=_MOST_BACKTRACKS)
    reason: Exception = ValueError()
    apart = SeparatePatterns()
    for translate in (
        _as_it_is,
        partial(translated, formats=formats),
        partial(translated, formats=formats, patterns=apart),
    ):
        for options in (linear, backtracking):
            try:
                one, others = translate(schema), {name: translate(other) for name, other in references.items()}
                others |= apart.documents()
                if any(str(part.get("$ref")).startswith(METASCHEMA_NAME) for part in _objects_of([one, others])):
                    others[METASCHEMA_NAME] = translate(METASCHEMA)
                validator = jsonschema_rs.validator_for(
                    one,
                    validate_formats=formats is Formats.ASSERT,
                    retriever=_from(others),
                    pattern_options=options,
                )
            except Exception as error:  # ValidationError, ReferencingError, RecursionError, ValueError for references
                reason = error.with_traceback(None)  # the traceback refers to this frame
            else:
                return one, others, validator, options is backtracking
    place = _place_in(schema, reason) if isinstance(reason, jsonschema_rs.ValidationError) else ""
    raise SchemaUnusable(f"the JSON Schema cannot be used: {place}{_first_line(reason)}") from reason


def _place_in(schema: Any, error: Any) -> str:
    """Return the error's path if it exists in the original schema. A translation may move parts."""
    here = schema
    for step in error.instance_path:
        if isinstance(here, dict) and isinstance(step, str):
            here = here.get(step)
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
        else:
            return ""
    path = "".join(f"/{step}" for step in error.instance_path)
    return f"{path}: " if 0 < len(path) <= _MOST_PATH and here is not None else ""


def _as_it_is(schema: Any) -> Any:
    return schema


def _read(text: str) -> Any:
    try:
        encoded = without_surrogate_halves(text.encode(errors="surrogatepass"))
        schema = json.loads(encoded.decode(), parse_float=exact_number)
    except (ValueError, RecursionError) as error:
        raise SchemaUnusable(f"the schema is not JSON: {_first_line(error)}") from error
    if not isinstance(schema, dict | bool):
        raise SchemaUnusable("a JSON Schema must be an object, true or false")
    return schema


def _libraries() -> tuple[Any, Any]:
    try:
        return import_module("jsonschema_rs"), import_module("orjson")
    except ImportError:
        raise SchemaUnusable(f"JSON Schema needs jsonschema-rs and orjson: {RULES_EXTRA}") from None


def _from(references: Mapping[str, Any]) -> Any:
    """Return a function that looks references up in `references`. Relative names were resolved before."""

    def retrieve(uri: str) -> Any:
        for name, schema in references.items():
            if uri == name or uri.endswith("/" + name):
                return schema
        raise ValueError(
            f"the schema refers to {uri[:200]}, but references are not fetched; put that schema under $defs"
        )

    return retrieve


def _properties_of(schema: Any) -> Iterator[str]:
    """Yield every property name in a schema."""
    for part in _objects_of(schema):
        for keyword in ("properties", "dependentRequired", "dependentSchemas"):
            names = part.get(keyword)
            if isinstance(names, dict):
                yield from names
        required = part.get("required")
        if isinstance(required, list):
            yield from (name for name in required if isinstance(name, str))


def _keys_of(schema: Any) -> Iterator[str]:
    for part in _objects_of(schema):
        yield from part


def _objects_of(schema: Any) -> Iterator[dict[str, Any]]:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _first_line(error: Exception) -> str:
    line = _OURS.sub("", _NOT_FOUND.sub(_WHERE_TO_PUT, str(error).partition("\n")[0])[:300])
    return "the schema is nested too deeply" if isinstance(error, RecursionError) or line == _LIBRARY_TOO_DEEP else line
