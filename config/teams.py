"""The sections `topic_files`, `contracts`, `floor`, `owner` and `client_owners`: policies of teams and of the operator.

See docs/policy-files.md.
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

    team: Text = described("name of the team", misnomers=dict.fromkeys(("name", "group"), "team: {value}"))
    contact: Text | None = described(
        "an address, a channel or a link for people",
        default=None,
        misnomers=dict.fromkeys(("email", "mail", "channel", "slack", "url"), "contact: {value}"),
    )

    def __str__(self) -> str:
        return self.team if self.contact is None else f"{self.team} ({self.contact})"


@section
class ClientOwner:
    """The owner of clients. Every given pattern must match; the first entry that matches a client names its owner."""

    owner: Owner = described("The team that owns the clients ([policy files](policy-files.md#owners-of-clients)).")
    principal: Pattern | None = described("pattern of principals, as `User:payments-*`", default=None)
    client_id: Pattern | None = described("pattern of client ids", default=None)

    def __post_init__(self) -> None:
        if self.principal is None and self.client_id is None:
            raise ValueError('expected clients, as principal: "User:payments-*" or client_id: "payments-*"')


@section
class TopicFile:
    """Files with entries of `topics`."""

    path: WrittenFileName = described(
        "name of a file, or a glob, as `policies/*.yaml`, relative to this file",
        misnomers=dict.fromkeys(("file", "files", "name"), "path: {value}"),
    )
    topics: TopicPatternList | None = described(
        "scope of the files: patterns as in `topics[].match`. An entry that is not provably within one of them is an "
        "error. Default: all topics",
        default=None,
        misnomers=dict.fromkeys(("match", "scope", "topic"), "topics: [{value}]"),
    )
    allow: tuple[Literal["exempt", "quotas"], ...] = described(
        "lists that the files may also have, for topics of the scope: `exempt` with `topics`, `quotas` with `topic`. "
        "Needs `topics`",
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
    """One item is as good as a list of one, and a path as good as an item with it."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        return items
    return [{"path": item} if isinstance(item, str) else item for item in items]


@section
class ContractFile:
    """Data contracts, of which each names its topics."""

    path: WrittenFileName = described(
        "name of a file, or a glob, as `contracts/*.odcs.yaml`, relative to this file",
        misnomers=dict.fromkeys(("file", "files", "name"), "path: {value}"),
    )
    topics: TopicPatternList | None = described(
        "scope of the contracts: patterns as in `topics[].match`. A topic outside of it is an error. "
        "Default: all topics",
        default=None,
        misnomers=dict.fromkeys(("match", "scope", "topic"), "topics: [{value}]"),
    )
    mode: Literal["reject", "observe"] = described(
        "mode of the rules that the contracts give: `reject`, or `observe`, which only reports violations",
        default="reject",
        corrections=MODES,
    )
    registry: Text | None = described(
        "name of an entry of `registries`, whose schemas the records of contracts with the format `avro` or `protobuf` "
        "follow",
        default=None,
    )
    owner: Owner | None = described(
        "The owner of the topics that have none of their own, and whose contract names no team.", default=None
    )


ContractFiles = Annotated[tuple[ContractFile, ...], BeforeValidator(_items), schema.SectionsOrTexts()]
TopicFiles = Annotated[tuple[TopicFile, ...], BeforeValidator(_items), schema.SectionsOrTexts()]


@section
class Floor:
    """The weakest policy of the matching topics. An entry with `match` alone has none: an exception."""

    match: TopicPattern = described(
        "pattern of topic names, as in `topics[].match`",
        misnomers=dict.fromkeys(("name", "topic", "pattern", "topics"), "match: {value}"),
    )
    before_max_ms: TimeBound | None = described(
        "the highest bound for the age of a record's timestamp", name="message.timestamp.before.max.ms", default=None
    )
    after_max_ms: TimeBound | None = described(
        "the highest bound for how far a record's timestamp may be in the future",
        name="message.timestamp.after.max.ms",
        default=None,
    )
    cleanup_policy: Literal["compact"] | None = described(
        "`compact`: every record needs a key", name="cleanup.policy", default=None
    )
    max_message_bytes: SizeBound | None = described(
        "the highest bound for the size of a batch", name="max.message.bytes", default=None
    )
    mode: Literal["reject", "observe"] | None = described(
        "the weakest mode: `reject` also replaces `mode: observe`, `mode: mark` and `checks: none`, `observe` only "
        "`checks: none`; "
        "Default: that of `defaults`",
        default=None,
        corrections=MODES,
    )
    framing: Literal["safe", "strict"] | None = described(
        "the weakest `framing`; default: that of `defaults`, or `safe`", default=None
    )
    rules: Annotated[tuple[Rule, ...], AfterValidator(check_names)] | None = described(
        "Rules that apply before the rules of the topic ([policies](policies.md)).", default=None
    )
