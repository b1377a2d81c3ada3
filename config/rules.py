"""What the file asks of a topic's records beyond what a broker asks (docs/policies.md)."""

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from sluicegate.config.content_keys import ContentKeys
from sluicegate.config.section import described, is_unset, section
from sluicegate.config.values.kinds import Bytes, Flag, Names, NoneOrMore, OneOrMore, Pattern, Text

_ASKS_NOTHING = frozenset({"name", "mode", "on_outage", "on_schema_error", "options"})


@section
class HeaderKeys:
    """Of a record's headers. `patterns`: every header of a name, where there is one, has a value that matches whole."""

    required: Names = described("names of headers that every record must have", default=())
    forbidden: Names = described("names of headers that no record may have", default=())
    patterns: dict[Text, Pattern] = described(
        "what the whole value of headers must match, in UTF-8, where they are there: a glob, or a regular "
        "expression between slashes, in RE2's syntax",
        default_factory=dict,
        formerly="matched",
    )
    max_count: NoneOrMore | None = described("how many headers a record may have", default=None)
    max_size: Bytes | None = described("how large a record's headers may be, names and values together", default=None)

    def __post_init__(self) -> None:
        if is_unset(self):
            raise ValueError("expected something to ask for, as required: [tenant]")
        both = sorted(set(self.required) & set(self.forbidden))
        if both:
            raise ValueError(f"header {both[0]} is both required and forbidden")


@section
class BatchKeys:
    """Of a batch as a whole."""

    max_records: OneOrMore = described("how many records a batch may have")


def _is_asked_for(value: bool) -> bool:
    if not value:
        raise ValueError("expected true; leave the key out where times may go back")
    return value


@section
class TimeKeys:
    """Of records' times. `monotonic`: they do not go back, for each producer and partition."""

    monotonic: Annotated[Flag, AfterValidator(_is_asked_for)] = described(
        "`true`: times do not go back, for each producer and partition"
    )


@section
class Rule:
    """A named rule: a record that breaks any part of it breaks it."""

    name: Text = described("what answers, events, log lines and metrics call it")
    mode: Literal["reject", "observe"] = described(
        "what becomes of a batch that breaks it: `reject`, or `observe`, which only tells it", default="reject"
    )
    on_outage: Literal["retriable", "forward", "reject"] = described(
        "what becomes of a batch while something that the rule depends on does not answer: rejected with an error "
        "upon which producers try again (`retriable`), forwarded (`forward`), or rejected for good (`reject`)",
        default="retriable",
        formerly="on.outage",
    )
    on_schema_error: Literal["reject", "retriable", "forward"] = described(
        "what becomes of a record whose schema exists and cannot be compiled or applied: the record is rejected for "
        "good (`reject`), or its batch is rejected with an error upon which producers try again (`retriable`), or "
        "forwarded (`forward`)",
        default="reject",
        formerly="on.schema.error",
    )
    key: ContentKeys | None = described("Of a record's key.", default=None)
    value: ContentKeys | None = described("Of a record's value.", default=None)
    headers: HeaderKeys | None = described("Of a record's headers.", default=None)
    batch: BatchKeys | None = described("Of a batch as a whole.", default=None)
    time: TimeKeys | None = described("Of records' times. Only with `mode: observe`.", default=None)
    cel: Text | None = described("an expression of CEL that must be true", default=None)
    entry_point: Text | None = described(
        "a rule of your own: the name of an installed entry point of the group `sluicegate.rules`", default=None
    )
    options: dict[Text, Any] = described("what it is made with; values are text", default_factory=dict)

    def __post_init__(self) -> None:
        if self.options and self.entry_point is None:
            raise ValueError(f"rule {self.name}: options belong to entry_point, a rule of your own")
        asks = [each.name for each in fields(self) if each.name not in _ASKS_NOTHING]
        if all(getattr(self, ask) is None for ask in asks):
            raise ValueError(f"rule {self.name} asks for nothing; give it {', '.join(asks[:-1])} or {asks[-1]}")
        if self.time is not None and self.mode != "observe":
            raise ValueError(
                f"rule {self.name}: times are only observed, because a producer that sends again goes back as well; "
                "add mode: observe"
            )


def check_names(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Answers and metrics name rules, so no two of a topic have one name. Raises ValueError."""
    seen: set[str] = set()
    for rule in rules:
        if rule.name in seen:
            raise ValueError(f"two rules are named {rule.name}; answers and metrics could not tell them apart")
        seen.add(rule.name)
    return rules
