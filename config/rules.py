"""The section `rules`: checks of a topic's records in addition to a broker's checks (docs/rules.md)."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from sluicegate.config.content_keys import ContentKeys
from sluicegate.config.mistakes import raise_all
from sluicegate.config.section import described, is_unset, section
from sluicegate.config.values.kinds import MODES, Bytes, Flag, Names, NoneOrMore, OneOrMore, Pattern, Text

_NOT_CHECKS = frozenset({"name", "mode", "on_outage", "on_schema_error", "options"})


@section
class HeaderKeys:
    """Rules about a record's headers. A pattern applies to every header with its name."""

    required: Names = described("The names of headers that must be present.", default=())
    forbidden: Names = described("The names of headers that must be absent.", default=())
    patterns: dict[Text, Pattern] = described(
        "Patterns by header name. The whole value of such a header must match, in UTF-8, if the header is present. "
        "A pattern is a glob, or a regular expression between slashes (RE2 syntax).",
        default_factory=dict,
        formerly="matched",
    )
    max_count: NoneOrMore | None = described("The maximum number of headers.", default=None)
    max_size: Bytes | None = described("The maximum total size of header names and values.", default=None)

    def __post_init__(self) -> None:
        if is_unset(self):
            raise ValueError("expected at least one key, such as required: [tenant]")
        both = sorted(set(self.required) & set(self.forbidden))
        raise_all(((), f"header {name} is both required and forbidden") for name in both)


@section
class BatchKeys:
    """Rules about a batch as a whole."""

    max_records: OneOrMore = described("The maximum number of records in a batch.")


def _must_be_true(value: bool) -> bool:
    if not value:
        raise ValueError("expected true; omit the key if timestamps may decrease")
    return value


@section
class TimeKeys:
    """Rules about record timestamps."""

    monotonic: Annotated[Flag, AfterValidator(_must_be_true)] = described(
        "Whether timestamps of each producer and partition must not decrease."
    )


@section
class Rule:
    """A named rule. A record violates it if it violates any of its parts."""

    name: Text = described("The name of the rule in responses, events, log lines and metrics.")
    mode: Literal["reject", "observe"] = described(
        "What happens to a batch that violates the rule: `reject` rejects it, `observe` only reports the violation.",
        default="reject",
        corrections=MODES,
    )
    on_outage: Literal["retriable", "forward", "reject"] = described(
        "What happens to a batch while a dependency of the rule (a registry, the rules process) does not respond: "
        "`retriable` rejects it with a retriable error, `forward` forwards it, `reject` rejects it with a fatal "
        "error.",
        default="retriable",
        formerly="on.outage",
    )
    on_schema_error: Literal["reject", "retriable", "forward"] = described(
        "What happens to a record if its schema exists but cannot be compiled or applied, or if a custom rule fails "
        "on it: `reject` rejects the record with a fatal error, `retriable` rejects its batch with a retriable "
        "error, `forward` forwards it.",
        default="reject",
        formerly="on.schema.error",
    )
    key: ContentKeys | None = described("Rules about a record's key.", default=None)
    value: ContentKeys | None = described("Rules about a record's value.", default=None)
    headers: HeaderKeys | None = described("Rules about a record's headers.", default=None)
    batch: BatchKeys | None = described("Rules about a batch as a whole.", default=None)
    time: TimeKeys | None = described("Rules about record timestamps. Only with `mode: observe`.", default=None)
    cel: Text | None = described(
        "A CEL expression that must be true. If `value` has an Avro or Protobuf schema, the expression sees the "
        "types of that schema.",
        default=None,
    )
    entry_point: Text | None = described(
        "A custom rule: the name of an installed entry point of the group `sluicegate.rules`.", default=None
    )
    options: dict[Text, Any] = described("The arguments of the custom rule. Values are text.", default_factory=dict)

    def __post_init__(self) -> None:
        raise_all(((), message) for message in self._mistakes())

    @property
    def names_principals(self) -> bool:
        """Return whether the rule's expression reads the client's principal."""
        return self.cel is not None and "client.principal" in self.cel

    def _mistakes(self) -> Iterator[str]:
        if self.options and self.entry_point is None:
            yield f"rule {self.name}: options is only valid with entry_point"
        asks = [each.name for each in fields(self) if each.name not in _NOT_CHECKS]
        if all(getattr(self, ask) is None for ask in asks):
            yield f"rule {self.name} checks nothing; add {', '.join(asks[:-1])} or {asks[-1]}"
        if self.time is not None and self.mode != "observe":
            yield (
                f"rule {self.name}: time rules can only be observed, because retries also go back in time; "
                "add mode: observe"
            )


def check_names(rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
    """Check that names are unique within a topic, because responses and metrics use them. Raises ValueError."""
    seen: set[str] = set()
    for rule in rules:
        if rule.name in seen:
            raise ValueError(f"two rules are named {rule.name}; names must be unique")
        seen.add(rule.name)
    return rules
