"""What the file asks of Produce requests and of who sends them, and whom it asks nothing (docs/policies.md)."""

from typing import Annotated, Literal

from pydantic import AfterValidator

from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import Bytes, Flag, Pattern, Text

_ASKS = ("acks", "codecs", "idempotent", "client_id", "max_batch_bytes", "software")


@section
class RequestMatch:
    """Which batches a rule concerns: all that are given must match; what is not given matches everything."""

    topics: Pattern | None = described("a pattern of topics' names, as in `topics[].match`", default=None)
    client_id: Pattern | None = described("a pattern of client ids", default=None)
    principal: Pattern | None = described("a pattern of principals, as `User:*`", default=None)


def _has_numbers(version: str) -> str:
    if not version[:1].isdigit():
        raise ValueError(f"expected a version, as 2.3 or 3.7.0; found {version!r}")
    return version


@section
class Software:
    """A client library by the name that it gives itself, and the version from which on it is taken."""

    name: Pattern = described("a pattern of names, as `librdkafka` or `apache-kafka-java`")
    min_version: Annotated[Text, AfterValidator(_has_numbers)] = described("the version from which on it is taken")


@section
class RequestRule:
    """What a batch's request must be like; what is not given is not asked."""

    name: Text = described("what answers, events, log lines and metrics call it")
    mode: Literal["reject", "observe"] = described(
        "what becomes of a batch whose request breaks it: `reject`, or `observe`, which only tells it", default="reject"
    )
    match: RequestMatch = described(
        "Which batches a rule concerns: all that are given must match.", default=RequestMatch()
    )
    acks: tuple[Literal["all", "1", "0"], ...] | None = described("which acks are taken", default=None)
    codecs: tuple[Literal["none", "gzip", "snappy", "lz4", "zstd"], ...] | None = described(
        "which codecs are taken", default=None
    )
    idempotent: Flag = described("`true`: producers must be idempotent", default=False)
    client_id: Pattern | None = described("what the client id must match", default=None)
    max_batch_bytes: Bytes | None = described("the largest batch, as it is sent", default=None)
    software: tuple[Software, ...] = described(
        "Client libraries by the name and version that they give themselves (ApiVersions). Who has given none is "
        "not asked.",
        default=(),
    )

    def __post_init__(self) -> None:
        if not any(getattr(self, ask) for ask in _ASKS):
            raise ValueError(f"rule {self.name} asks for nothing; give it {', '.join(_ASKS[:-1])} or {_ASKS[-1]}")


@section
class Exempt:
    """Clients that are asked nothing; what is given must match, both where both are."""

    principal: Pattern | None = described("a pattern of principals, as `User:mirror-maker`", default=None)
    client_id: Pattern | None = described("a pattern of client ids", default=None)

    def __post_init__(self) -> None:
        if self.principal is None and self.client_id is None:
            raise ValueError('expected whom, as principal: "User:mirror-maker" or client_id: "backfill-*"')

    @property
    def given(self) -> dict[str, str]:
        """What is given of both, for a log line."""
        both = {"principal": self.principal, "client_id": self.client_id}
        return {key: pattern for key, pattern in both.items() if pattern is not None}


def check_request_names(rules: tuple[RequestRule, ...]) -> tuple[RequestRule, ...]:
    """Answers and metrics name rules. Raises ValueError for a name that stands there twice."""
    names = [rule.name for rule in rules]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two rules for requests are named {twice}; answers and metrics could not tell them apart")
    return rules
