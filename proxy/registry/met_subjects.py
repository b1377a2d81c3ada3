"""Which subjects of a registry rules and sensitive fields can meet, by their subject name strategies."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sluicegate.config.content_keys import Schema
from sluicegate.config.model import Config
from sluicegate.config.sensitive import SensitiveFields
from sluicegate.config.teams import Floor
from sluicegate.config.topics import Topic
from sluicegate.validation.rules.schemas.registered_schema import SubjectName
from sluicegate.validation.topic_patterns import TopicPatterns

_SEPARATOR = "-"


@dataclass(slots=True)
class MetSubjects:
    """The subjects that rules and sensitive fields with one registry can meet.

    `all_subjects`: one of them takes records of any subject, or of subjects that are named after records. `by_side`:
    patterns of topics whose subject is `TOPIC-key` or `TOPIC-value`. `by_record`: of those whose subject is
    `TOPIC-RECORD`. `constrained`: those whose constraints apply (`protovalidate`);
    `conditioned`: those whose conditions apply; `tagged`: those of sensitive fields with tags.
    """

    all_subjects: bool = False
    by_side: dict[str, list[str]] = field(default_factory=dict)
    by_record: list[str] = field(default_factory=list)
    constrained: "MetSubjects | None" = None
    conditioned: "MetSubjects | None" = None
    tagged: "dict[SensitiveFields, MetSubjects]" = field(default_factory=dict)

    def matcher(self) -> "SubjectMatcher":
        """Return a matcher of subject names."""
        return SubjectMatcher(self)


class SubjectMatcher:
    """Matches names of subjects without their context."""

    def __init__(self, met: MetSubjects) -> None:
        self._all = met.all_subjects
        self._by_side = {side: TopicPatterns(patterns) for side, patterns in met.by_side.items()}
        self._by_record = TopicPatterns(met.by_record) if met.by_record else None

    def __call__(self, subject: str) -> bool:
        """Return whether a rule or a sensitive field can meet the subject."""
        if self._all:
            return True
        topic, _, side = subject.rpartition(_SEPARATOR)
        patterns = self._by_side.get(side)
        if patterns is not None and topic and patterns.first_match(topic) is not None:
            return True
        # Neither topics' nor records' names tell where one ends, but records' full names have no hyphen.
        return self._by_record is not None and bool(topic) and self._by_record.first_match(topic) is not None


def met_subjects(config: Config) -> dict[str, MetSubjects]:
    """Return the subjects that can be met, for each registry that a rule or sensitive fields name."""
    found: dict[str, MetSubjects] = {}
    for pattern, side, schema, fields in _uses(config):
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
        if fields is not None and fields.tags:
            _add(met.tagged.setdefault(fields, MetSubjects()), pattern, side, strategy)
    return found


def _add(met: MetSubjects, pattern: str, side: str, strategy: SubjectName) -> None:
    if strategy is SubjectName.TOPIC:
        met.by_side.setdefault(side, []).append(pattern)
    elif strategy is SubjectName.TOPIC_RECORD:
        met.by_record.append(pattern)
    else:
        met.all_subjects = True


def _uses(config: Config) -> Iterator[tuple[str, str, Schema | None, SensitiveFields | None]]:
    """Yield the pattern of topics, the side and the schema of each rule, and of sensitive fields with them."""
    for _, keys in config.sections_with_rules():
        pattern = keys.match if isinstance(keys, Topic | Floor) else "*"
        for rule in keys.rules or ():
            for side, content in (("key", rule.key), ("value", rule.value)):
                yield pattern, side, None if content is None else content.schema_, None
        for fields in () if isinstance(keys, Floor) else keys.sensitive or ():
            yield pattern, "value", fields.schema_, fields
