"""The sections `topic_files`, `contracts`, `floor`, `owner` and `client_owners`.

They define policies of teams and of the operator. See docs/policy-files.md.
"""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator

from sluicegate.config.rules import Rule, check_names
from sluicegate.config.section import described, section
from sluicegate.config.values import json_schema_kinds as schema
from sluicegate.config.values.kinds import (
    MODES,
    Pattern,
    SizeBound,
    Text,
    TimeBound,
    TopicPattern,
    TopicPatternList,
    WrittenFileName,
)


@section
class Owner:
    """The team that owns topics, and how to reach it."""

    team: Text = described("The name of the team.", misnomers=dict.fromkeys(("name", "group"), "team: {value}"))
    contact: Text | None = described(
        "An address, a channel or a link at which people reach the team.",
        default=None,
        misnomers=dict.fromkeys(("email", "mail", "channel", "slack", "url"), "contact: {value}"),
    )

    def __str__(self) -> str:
        return self.team if self.contact is None else f"{self.team} ({self.contact})"


@section
class ClientOwner:
    """The owner of clients. Every given pattern must match. The first matching entry names a client's owner."""

    owner: Owner = described("The team that owns the clients ([policy files](policy-files.md#owners-of-clients)).")
    principal: Pattern | None = described("A pattern of principals, for example `User:payments-*`.", default=None)
    client_id: Pattern | None = described("A pattern of client ids.", default=None)

    def __post_init__(self) -> None:
        if self.principal is None and self.client_id is None:
            raise ValueError('expected clients, such as principal: "User:payments-*" or client_id: "payments-*"')


@section
class TopicFile:
    """Files with entries of `topics`."""

    path: WrittenFileName = described(
        "The name of a file, or a glob such as `policies/*.yaml`, relative to this file.",
        misnomers=dict.fromkeys(("file", "files", "name"), "path: {value}"),
    )
    topics: TopicPatternList | None = described(
        "The scope of the files, as patterns like those of `topics[].match`. An entry that is not provably within "
        "one of them is an error. Default: all topics.",
        default=None,
        misnomers=dict.fromkeys(("match", "scope", "topic"), "topics: [{value}]"),
    )
    allow: tuple[Literal["exempt", "quotas"], ...] = described(
        "The lists that the files may also contain, for topics of the scope: `exempt` with `topics`, and `quotas` "
        "with `topic`. Needs `topics`.",
        default=(),
        misnomers=dict.fromkeys(("may", "grants", "permit", "allowed"), "allow: [{value}]"),
    )
    owner: Owner | None = described(
        "The owner of the entries in files that have no `owner` of their own ([policy files](policy-files.md#owners)).",
        default=None,
    )

    def __post_init__(self) -> None:
        if self.allow and self.topics is None:
            raise ValueError("allow needs topics, the scope that exemptions and quotas of the files are limited to")


def _items(value: Any) -> Any:
    """Convert a single item to a list, and a bare path to an item with that path."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        return items
    return [{"path": item} if isinstance(item, str) else item for item in items]


@section
class ContractFile:
    """Data contracts, each of which names its topics."""

    path: WrittenFileName = described(
        "The name of a file, or a glob such as `contracts/*.odcs.yaml`, relative to this file.",
        misnomers=dict.fromkeys(("file", "files", "name"), "path: {value}"),
    )
    topics: TopicPatternList | None = described(
        "The scope of the contracts, as patterns like those of `topics[].match`. A topic outside the scope is an "
        "error. Default: all topics.",
        default=None,
        misnomers=dict.fromkeys(("match", "scope", "topic"), "topics: [{value}]"),
    )
    mode: Literal["reject", "observe"] = described(
        "The mode of the rules in the contracts: `reject`, or `observe`, which only reports violations.",
        default="reject",
        corrections=MODES,
    )
    registry: Text | None = described(
        "The name of an entry of `registries`. Records follow its schemas if they are Avro or Protobuf by their "
        "contract.",
        default=None,
    )
    owner: Owner | None = described(
        "The owner of topics without an owner of their own whose contract names no team.", default=None
    )


ContractFiles = Annotated[tuple[ContractFile, ...], BeforeValidator(_items), schema.SectionsOrTexts()]
TopicFiles = Annotated[tuple[TopicFile, ...], BeforeValidator(_items), schema.SectionsOrTexts()]


@section
class Floor:
    """The weakest policy of the matching topics. An entry with only `match` exempts its topics from the floor."""

    match: TopicPattern = described(
        "A pattern of topic names, as in `topics[].match`.",
        misnomers=dict.fromkeys(("name", "topic", "pattern", "topics"), "match: {value}"),
    )
    before_max_ms: TimeBound | None = described(
        "The highest value that `message.timestamp.before.max.ms` can have for the topics.",
        name="message.timestamp.before.max.ms",
        default=None,
    )
    after_max_ms: TimeBound | None = described(
        "The highest value that `message.timestamp.after.max.ms` can have for the topics.",
        name="message.timestamp.after.max.ms",
        default=None,
    )
    cleanup_policy: Literal["compact"] | None = described(
        "`compact` requires a key in every record.", name="cleanup.policy", default=None
    )
    max_message_bytes: SizeBound | None = described(
        "The highest value that `max.message.bytes` can have for the topics.", name="max.message.bytes", default=None
    )
    mode: Literal["reject", "observe"] | None = described(
        "The weakest mode. `reject` also replaces `mode: observe`, `mode: mark` and `checks: none`. `observe` "
        "replaces only `checks: none`. Default: the mode of `defaults`.",
        default=None,
        corrections=MODES,
    )
    framing: Literal["safe", "strict"] | None = described(
        "The weakest `framing`. Default: the value of `defaults`, or `safe`.", default=None
    )
    rules: Annotated[tuple[Rule, ...], AfterValidator(check_names)] | None = described(
        "Rules that apply before the rules of the topic ([rules](rules.md)).", default=None
    )
