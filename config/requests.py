"""The sections `requests` and `exempt`: rules for Produce requests, and exempt clients (docs/rules.md)."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import MODES, Bytes, Flag, Pattern, Text, TopicPattern, TopicPatternList

_CHECKS = ("acks", "codecs", "idempotent", "client_id", "max_batch_bytes", "software")


@section
class RequestMatch:
    """The batches to which a rule applies. A batch must match every pattern that is set."""

    topics: TopicPattern | None = described(
        "A pattern of topic names, as in `topics[].match`.", default=None, misnomers={"topic": "topics: {value}"}
    )
    client_id: Pattern | None = described("A pattern of client ids.", default=None)
    principal: Pattern | None = described("A pattern of principals, for example `User:*`.", default=None)


def _has_numbers(version: str) -> str:
    if not version[:1].isdigit():
        raise ValueError(f"expected a version such as 2.3 or 3.7.0; found {version!r}")
    return version


@section
class Software:
    """A client library, by its name in ApiVersions requests, and its minimum version."""

    name: Pattern = described("A pattern of library names, for example `librdkafka` or `apache-kafka-java`.")
    min_version: Annotated[Text, AfterValidator(_has_numbers)] = described("The lowest version that is accepted.")


@section
class RequestRule:
    """A rule about the Produce request of a batch. Keys that are not set check nothing."""

    name: Text = described("The name of the rule in responses, events, log lines and metrics.")
    mode: Literal["reject", "observe"] = described(
        "What happens to the batches of a request that violates the rule: `reject` rejects them, `observe` only "
        "reports the violation.",
        default="reject",
        corrections=MODES,
    )
    match: RequestMatch = described(
        "The batches to which the rule applies. A batch must match every pattern that is set.", default=RequestMatch()
    )
    acks: tuple[Literal["all", "1", "0"], ...] | None = described(
        "The values of `acks` that are accepted.", default=None, corrections={"-1": "all", "leader": "1", "none": "0"}
    )
    codecs: tuple[Literal["none", "gzip", "snappy", "lz4", "zstd"], ...] | None = described(
        "The compression codecs that are accepted.",
        default=None,
        corrections={"uncompressed": "none", "zst": "zstd", "zstandard": "zstd", "gz": "gzip"},
        misnomers={"compression": "codecs: [{value}]", "compression.type": "codecs: [{value}]"},
    )
    idempotent: Flag = described(
        "Whether producers must be idempotent.",
        default=False,
        misnomers={"enable.idempotence": "idempotent: {value}", "idempotence": "idempotent: {value}"},
    )
    client_id: Pattern | None = described("A pattern that the client id must match.", default=None)
    max_batch_bytes: Bytes | None = described("The maximum size of a batch as it is sent (compressed).", default=None)
    software: tuple[Software, ...] = described(
        "Client libraries, by the name and version in ApiVersions requests. Clients that send none are not checked.",
        default=(),
    )

    def __post_init__(self) -> None:
        if not any(getattr(self, key) for key in _CHECKS):
            raise ValueError(f"rule {self.name} checks nothing; add {', '.join(_CHECKS[:-1])} or {_CHECKS[-1]}")


@section
class Exempt:
    """Clients that are not validated. A client must match every pattern that is set."""

    principal: Pattern | None = described("A pattern of principals, for example `User:mirror-maker`.", default=None)
    client_id: Pattern | None = described("A pattern of client ids.", default=None)
    topics: TopicPatternList | None = described(
        "The topics to which the exemption applies, as patterns like those of `topics[].match`. The "
        "[floor](policy-files.md#the-floor) of these topics still applies. Default: all topics, and no floor "
        "applies.",
        default=None,
        misnomers=dict.fromkeys(("topic", "match"), "topics: [{value}]"),
    )

    def __post_init__(self) -> None:
        if self.principal is None and self.client_id is None:
            raise ValueError('expected a client, such as principal: "User:mirror-maker" or client_id: "backfill-*"')

    @property
    def given(self) -> dict[str, str]:
        """Return the patterns that are set, for a log line."""
        topics = None if self.topics is None else ", ".join(self.topics)
        patterns = {"principal": self.principal, "client_id": self.client_id, "topics": topics}
        return {key: pattern for key, pattern in patterns.items() if pattern is not None}


def check_request_names(rules: tuple[RequestRule, ...]) -> tuple[RequestRule, ...]:
    """Check that names are unique, because responses and metrics use them. Raises ValueError."""
    names = [rule.name for rule in rules]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two rules for requests are named {twice}; names must be unique")
    return rules
