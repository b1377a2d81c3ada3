"""What the file asks of a topic's records beyond what a broker asks (docs/policies.md)."""

from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from sluicegate.config.section import is_unset, named, section
from sluicegate.config.value_rules import Json, Schema
from sluicegate.config.values.kinds import Bytes, Flag, Names, NoneOrMore, OneOrMore, Pattern, SomeBytes, Text

_ASKS = ("key", "value", "headers", "batch", "time", "cel", "entry_point")


@section
class ContentKeys:
    """Of a key or a value; null has no size and is no text, so only `required` refuses it."""

    required: Flag = False
    min_size: SomeBytes | None = None
    max_size: SomeBytes | None = None
    utf8: Flag = False
    json_text: Json | None = named("json", default=None)
    schema_: Schema | None = named("schema", default=None)

    def __post_init__(self) -> None:
        if is_unset(self):
            raise ValueError("expected something to ask for, as required: true or max_size: 1MiB")
        if self.min_size is not None and self.max_size is not None and self.min_size > self.max_size:
            raise ValueError(f"min_size {self.min_size} is more than max_size {self.max_size}")


@section
class HeaderKeys:
    """Of a record's headers. `matched`: every header of a name, where there is one, has a value that matches whole."""

    required: Names = ()
    forbidden: Names = ()
    matched: dict[Text, Pattern] = field(default_factory=dict)
    max_count: NoneOrMore | None = None
    max_size: Bytes | None = None

    def __post_init__(self) -> None:
        if is_unset(self):
            raise ValueError("expected something to ask for, as required: [tenant]")
        both = sorted(set(self.required) & set(self.forbidden))
        if both:
            raise ValueError(f"header {both[0]} is both required and forbidden")


@section
class BatchKeys:
    """Of a batch as a whole."""

    max_records: OneOrMore


def _is_asked_for(value: bool) -> bool:
    if not value:
        raise ValueError("expected true; leave the key out where times may go back")
    return value


@section
class TimeKeys:
    """Of records' times. `monotonic`: they do not go back, for each producer and partition."""

    monotonic: Annotated[Flag, AfterValidator(_is_asked_for)]


@section
class Rule:
    """A named rule: a record that breaks any part of it breaks it."""

    name: Text
    mode: Literal["reject", "observe"] = "reject"
    on_outage: Literal["retriable", "forward", "reject"] = named("on.outage", default="retriable")
    on_schema_error: Literal["reject", "retriable", "forward"] = named("on.schema.error", default="reject")
    key: ContentKeys | None = None
    value: ContentKeys | None = None
    headers: HeaderKeys | None = None
    batch: BatchKeys | None = None
    time: TimeKeys | None = None
    cel: Text | None = None
    entry_point: Text | None = None
    options: dict[Text, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.options and self.entry_point is None:
            raise ValueError(f"rule {self.name}: options belong to entry_point, a rule of your own")
        if all(getattr(self, ask) is None for ask in _ASKS):
            raise ValueError(
                f"rule {self.name} asks for nothing; give it key, value, headers, batch, time, cel or entry_point"
            )
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
