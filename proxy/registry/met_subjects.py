"""Determines to which subjects of a registry rules and sensitive fields can apply, by their subject name strategies."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from sluicegate.config.content_keys import Schema
from sluicegate.config.model import Config
from sluicegate.config.rules import Rule
from sluicegate.config.sensitive import SensitiveFields
from sluicegate.config.teams import Floor
from sluicegate.config.topics import Topic
from sluicegate.validation.rules.schemas.registered_schema import SubjectName
from sluicegate.validation.rules.schemas.schema_expression import CompileFor, expression_of, json_schema_of
from sluicegate.validation.topic_patterns import TopicPatterns

_SEPARATOR = "-"
# Only with these strategies does a subject's name show which topics have records with the schema.
_OF_TOPICS: Final = frozenset({SubjectName.TOPIC, SubjectName.TOPIC_RECORD})


@dataclass(frozen=True, slots=True)
class RuleOverSchemas:
    """A rule that is compiled for each schema: an expression, or a JSON Schema for the data as JSON."""

    name: str
    text: str
    compile_for: CompileFor


@dataclass(slots=True)
class MetSubjects:
    """The subjects of one registry to which rules and sensitive fields can apply.

    `all_subjects` is true if one of these rules or fields applies to records of any subject, or of subjects named after
    records. `by_side` contains patterns of topics whose subject is `TOPIC-key` or `TOPIC-value`, and `by_record`
    patterns of topics whose subject is `TOPIC-RECORD`.

    The other fields are subsets. The subjects in `constrained` use the schema's constraints (`protovalidate`), those in
    `conditioned` its conditions, and those in `inlined` the rules inside it. `compiled_for` contains the subjects of
    each rule over schemas, and `tagged` the subjects of sensitive fields with tags.
    """

    all_subjects: bool = False
    by_side: dict[str, list[str]] = field(default_factory=dict)
    by_record: list[str] = field(default_factory=list)
    constrained: "MetSubjects | None" = None
    conditioned: "MetSubjects | None" = None
    inlined: "MetSubjects | None" = None
    compiled_for: "dict[RuleOverSchemas, MetSubjects]" = field(default_factory=dict)
    tagged: "dict[SensitiveFields, MetSubjects]" = field(default_factory=dict)

    def matcher(self) -> "SubjectMatcher":
        """Create a matcher of subject names."""
        return SubjectMatcher(self)


class SubjectMatcher:
    """Matches the names of subjects without their context."""

    def __init__(self, met: MetSubjects) -> None:
        self._all = met.all_subjects
        self._by_side = {side: TopicPatterns(patterns) for side, patterns in met.by_side.items()}
        self._by_record = TopicPatterns(met.by_record) if met.by_record else None

    def __call__(self, subject: str) -> bool:
        """Return whether a rule or a sensitive field can apply to the subject."""
        if self._all:
            return True
        topic, _, side = subject.rpartition(_SEPARATOR)
        patterns = self._by_side.get(side)
        if patterns is not None and topic and patterns.first_match(topic) is not None:
            return True
        # A name TOPIC-RECORD does not show where the topic ends. However, a record's full name contains no hyphen.
        return self._by_record is not None and bool(topic) and self._by_record.first_match(topic) is not None


def met_subjects(config: Config) -> dict[str, MetSubjects]:
    """Return the subjects to which rules and sensitive fields can apply, for each registry that they use."""
    found: dict[str, MetSubjects] = {}
    for pattern, side, schema, named in _uses(config):
        if schema is None or schema.registry is None:
            continue
        strategy = SubjectName(schema.subject or "topic")
        met = found.setdefault(schema.registry, MetSubjects())
        _add(met, pattern, side, strategy)
        if schema.protovalidate:
            met.constrained = met.constrained or MetSubjects()
            _add(met.constrained, pattern, side, strategy)
        if schema.conditions:
            met.conditioned = met.conditioned or MetSubjects()
            _add(met.conditioned, pattern, side, strategy)
        if schema.inline_rules:
            met.inlined = met.inlined or MetSubjects()
            _add(met.inlined, pattern, side, strategy)
        if isinstance(named, SensitiveFields):
            if named.tags:
                _add(met.tagged.setdefault(named, MetSubjects()), pattern, side, strategy)
            continue
        for rule in _over_schemas(named, side, schema) if strategy in _OF_TOPICS else ():
            _add(met.compiled_for.setdefault(rule, MetSubjects()), pattern, side, strategy)
    return found


def _add(met: MetSubjects, pattern: str, side: str, strategy: SubjectName) -> None:
    if strategy is SubjectName.TOPIC:
        met.by_side.setdefault(side, []).append(pattern)
    elif strategy is SubjectName.TOPIC_RECORD:
        met.by_record.append(pattern)
    else:
        met.all_subjects = True


def _over_schemas(rule: Rule, side: str, schema: Schema) -> Iterator[RuleOverSchemas]:
    if schema.json_schema is not None:
        yield RuleOverSchemas(rule.name, schema.json_schema, json_schema_of)
    if rule.cel is not None and side == "value":
        yield RuleOverSchemas(rule.name, rule.cel, expression_of)


def _uses(config: Config) -> Iterator[tuple[str, str, Schema | None, Rule | SensitiveFields]]:
    """Yield the topic pattern, side and schema of each rule, and of all sensitive fields that have a schema."""
    for _, keys in config.sections_with_rules():
        pattern = keys.match if isinstance(keys, Topic | Floor) else "*"
        for rule in keys.rules or ():
            for side, content in (("key", rule.key), ("value", rule.value)):
                yield pattern, side, None if content is None else content.schema_, rule
        for fields in () if isinstance(keys, Floor) else keys.sensitive or ():
            yield pattern, "value", fields.schema_, fields
