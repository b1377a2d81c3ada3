"""Compiles the newest schema of each subject that rules or sensitive fields can use, before a record needs it.

A survey limits its subjects and its duration. The rules process limits each compilation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from time import monotonic, time_ns
from uuid import UUID

from sluicegate.config.model import Config
from sluicegate.config.registries import Registry
from sluicegate.proxy.registry.confluent_api import NewestSchema, SchemaText
from sluicegate.proxy.registry.http import RegistryFailed
from sluicegate.proxy.registry.met_subjects import MetSubjects, RuleOverSchemas, met_subjects
from sluicegate.proxy.registry.registries import api_of, http_of
from sluicegate.proxy.registry.schema_compiler import (
    REGISTRY_KINDS,
    CompiledSchema,
    RulesProcessCompiler,
    SchemaCompiler,
)
from sluicegate.proxy.reporting.bounded_text import cut, printable
from sluicegate.proxy.rules_process.reports import RulesProcessReports
from sluicegate.proxy.rules_process.rule_limits import RuleLimits
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.rules_process.stoppable import StoppableExpression
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.validation.rules.rule import Outage, RuleUnusable, SchemaError
from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema, HasConstraints, SchemaUnusable
from sluicegate.validation.rules.schemas.inline_rules import compiled_inline_rules, rules_that_are_not_enforced
from sluicegate.validation.rules.schemas.registry_conditions import condition_on
from sluicegate.validation.rules.schemas.rule_sets import WriteRules, passed_over_by

_MOST_SUBJECTS = 2_000
_MOST_SECONDS = 120.0
_MOST_REASON = 300


@dataclass(frozen=True, slots=True)
class UnusableSchema:
    """A subject's newest schema, if records with this schema cannot be validated.

    `fault` is the predicate of the message. The reason follows it.
    """

    subject: str
    version: int
    schema_id: int | UUID
    reason: str
    fault: str = "cannot be used"

    def __str__(self) -> str:
        subject = printable(cut(self.subject))
        return f"subject {subject}, version {self.version} (schema {self.schema_id}) {self.fault}: {self.reason}"


@dataclass(frozen=True, slots=True)
class SurveyResult:
    """One registry's result.

    `unchecked` contains the subjects beyond a limit. `failure` explains why the survey ended early. `unreachable` is
    the registry's part of that failure, or empty. `missing_tags` contains sentences about tags of sensitive fields that
    no schema has. `passed_over` contains sentences about records, or parts of records, that are not validated because
    their schemas have rules that change records.
    """

    registry: str
    usable: int
    unusable: tuple[UnusableSchema, ...]
    unchecked: int = 0
    failure: str = ""
    unreachable: str = ""
    missing_tags: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether the newest schema of each subject was compiled."""
        return not self.unchecked and not self.failure


_Key = tuple[str, int, int | UUID, int]
"""A subject, the version and id of its newest schema, and a hash of the schema."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The result for one schema.

    `reason` explains in one line why the schema cannot be used; it is empty if the schema can be used. `unusable_rules`
    likewise explains why rules inside the schema cannot be evaluated. The other fields are the tags of sensitive fields
    that the schema has, and the parts of its records that are not validated.
    """

    reason: str = ""
    unusable_rules: str = ""
    tags: frozenset[str] = frozenset()
    passed_over: tuple[str, ...] = ()


class RegistrySurvey:
    """Surveys one registry. Keeps the results, so that a later survey compiles only new schemas.

    Only one thread may use it.
    """

    def __init__(
        self,
        name: str,
        section: Registry,
        met: MetSubjects,
        now: Callable[[], float] = monotonic,
        most_seconds: float = _MOST_SECONDS,
    ) -> None:
        self._name = name
        self._http = http_of(name, section)
        self._api = api_of(section)
        self._met = met.matcher()
        self._constrained = (met.constrained or MetSubjects()).matcher()
        self._conditioned = (met.conditioned or MetSubjects()).matcher()
        self._inlined = (met.inlined or MetSubjects()).matcher()
        self._compiled_for = [(rule, of.matcher()) for rule, of in met.compiled_for.items()]
        self._tagged = [(fields, of.matcher()) for fields, of in met.tagged.items()]
        self._now = now
        self._most_seconds = most_seconds
        self._known: dict[_Key, _Found] = {}

    def compile_new_schemas(self, compiler: SchemaCompiler) -> SurveyResult:
        """Compile the new schemas. Blocks for at most two minutes.

        Sends two requests, and further requests for each subject.
        """
        end = self._now() + self._most_seconds
        results: dict[_Key, _Found] = {}
        subjects: list[str] = []
        done, failure, unreachable = 0, "", ""
        try:
            self._http.begin()
            subjects = sorted(each for each in self._api.subjects(self._http) if self._api.is_met(each, self._met))
            for subject in subjects[:_MOST_SUBJECTS]:
                if self._now() >= end:
                    break
                self._http.begin()
                newest = self._api.newest(self._http, subject)
                if newest is not None:
                    key = subject, newest.version, newest.schema_id, hash(newest.text)
                    results[key] = self._known.get(key) or self._found_in(newest, subject, compiler)
                done += 1
        except RegistryFailed as error:
            unreachable = str(error)
            failure = f"registry {self._name} is unavailable: {unreachable}"
        except Outage as error:
            failure = str(error)
        finally:
            self._http.close()
        self._known = results
        unusable = tuple(chain.from_iterable(_unusable(*key[:3], found) for key, found in results.items()))
        unchecked = len(subjects) - done
        is_complete = not unchecked and not failure
        return SurveyResult(
            self._name,
            len(results) - len(unusable),
            unusable,
            unchecked,
            failure,
            unreachable,
            tuple(self._missing_tags(results)) if is_complete else (),
            tuple(
                f"subject {printable(cut(key[0]))}: {words}"
                for key, found in results.items()
                for words in found.passed_over
            ),
        )

    def _found_in(self, newest: NewestSchema, subject: str, compiler: SchemaCompiler) -> "_Found":
        """Return the result for one schema. Raises Outage."""
        if not isinstance(newest.text, SchemaText):
            return _Found(_one_line(newest.text))
        try:
            content = compiler(newest.text).content
            if isinstance(content, HasConstraints) and self._api.is_met(subject, self._constrained):
                content.constraints()
            if self._api.is_met(subject, self._conditioned):
                for condition in newest.text.rules.conditions:
                    expression = condition_on(content, condition, time_ns)
                    if isinstance(expression, str):
                        return _Found(_one_line(f"its condition {condition.name} {expression}"))
                    _compile(expression, f"its condition {condition.name} cannot be compiled")
            for rule, met in self._compiled_for:
                if self._api.is_met(subject, met):
                    _compile_rule(rule, content)
            are_enforced, rules = self._api.is_met(subject, self._inlined), newest.text.rules
            unusable_rules = _unusable_rules(content, rules) if are_enforced else ""
            sentences = chain(passed_over_by(rules), rules_that_are_not_enforced(content, rules, are_enforced))
            return replace(
                self._with_tags(content, subject),
                unusable_rules=_one_line(unusable_rules) if unusable_rules else "",
                passed_over=tuple(map(_one_line, sentences)),
            )
        except (SchemaUnusable, SchemaError) as error:
            return _Found(_one_line(str(error)))

    def _with_tags(self, content: Content, subject: str) -> "_Found":
        """Return the tags of a schema's fields. Raises SchemaError."""
        policies = [fields for fields, met in self._tagged if self._api.is_met(subject, met)]
        if not policies:
            return _Found()
        from sluicegate.validation.sensitive.schema_values import tagged_fields  # noqa: PLC0415  # 2 MB

        tagged = tagged_fields(content)
        for field in tagged:
            policy = next((each for each in policies if not field.tags.isdisjoint(each.tags)), None)
            if policy is not None and policy.action != "reject" and field.kind is not None:
                return _Found(
                    _one_line(
                        f"its field {cut(field.name)} has a tag of the sensitive fields {policy.name} and is "
                        f"{field.kind}; only strings can be masked"
                    )
                )
        wanted = frozenset(tag for policy in policies for tag in policy.tags)
        return _Found(tags=wanted.intersection(tag for field in tagged for tag in field.tags))

    def _missing_tags(self, results: "dict[_Key, _Found]") -> Iterator[str]:
        """Yield a sentence for each tag of sensitive fields that no field in any of the affected subjects has."""
        for fields, met in self._tagged:
            found = [each for (subject, *_), each in results.items() if self._api.is_met(subject, met)]
            if not found or any(each.reason for each in found):
                continue
            for tag in fields.tags:
                if not any(tag in each.tags for each in found):
                    yield (
                        f"no field of the newest schemas of {len(found)} subjects has the tag {printable(cut(tag))} of "
                        f"the sensitive fields {printable(cut(fields.name))}"
                    )


class Surveys:
    """Surveys all registries that rules and sensitive fields use. The rules process exists only during a survey."""

    def __init__(self, config: Config, reports: RulesProcessReports | None = None) -> None:
        """`reports` receives the events of the rules process."""
        self._reports = reports
        self._limits = RuleLimits(config.limits.rule_cpu_seconds, config.limits.rule_memory_bytes)
        self._surveys = [
            RegistrySurvey(name, config.registries[name], met) for name, met in met_subjects(config).items()
        ]

    def survey_all(self) -> list[SurveyResult]:
        """Return each registry's result. Blocks."""
        if not self._surveys:
            return []
        process = RulesProcess(self._limits, WaitBudget(), self._reports)
        compiler = RulesProcessCompiler(process)

        def compiled(text: SchemaText) -> CompiledSchema:
            process.prepare(REGISTRY_KINDS)  # the process starts with the first new schema
            return compiler(text)

        try:
            return [survey.compile_new_schemas(compiled) for survey in self._surveys]
        finally:
            process.close()


def _compile_rule(rule: RuleOverSchemas, content: Content) -> None:
    """Compile a rule for a schema. Raises SchemaUnusable, SchemaError and Outage."""
    failure = f"the rule {printable(cut(rule.name))} does not fit the schema"
    try:
        expression = rule.compile_for(content, rule.text)
    except RuleUnusable as error:
        raise SchemaUnusable(f"{failure}: {error}") from error
    _compile(expression, failure)


def _unusable_rules(content: Content, rules: WriteRules) -> str:
    """Return which rules inside a schema cannot be evaluated, or an empty string if all can.

    Raises SchemaUnusable and Outage.
    """
    if rules.rewrites:
        return ""
    failure = "the rules in the schema cannot be compiled"
    try:
        expression = compiled_inline_rules(content, rules.changes, time_ns)
    except RuleUnusable as error:
        raise SchemaUnusable(f"{failure}: {error}") from error
    return _compile(expression, failure)


def _unusable(subject: str, version: int, schema_id: int | UUID, found: _Found) -> Iterator[UnusableSchema]:
    if found.reason:
        yield UnusableSchema(subject, version, schema_id, found.reason)
    elif found.unusable_rules:
        fault = "contains rules that cannot be evaluated"
        yield UnusableSchema(subject, version, schema_id, found.unusable_rules, fault)


def _compile(expression: ExpressionOfSchema, failure: str) -> str:
    """Compile an expression in the rules process before the first record needs it.

    Return which rules inside a schema cannot be evaluated, or an empty string. Raises SchemaUnusable and Outage.
    """
    if isinstance(expression, StoppableExpression):
        try:
            return expression.compile()
        except SchemaUnusable as error:
            raise SchemaUnusable(f"{failure}: {error}") from error
    return ""


def _one_line(reason: str) -> str:
    return printable(" ".join(reason.split()))[:_MOST_REASON] or "the compiler reports no reason"
