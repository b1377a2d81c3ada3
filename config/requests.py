"""What the file asks of Produce requests and of who sends them, and whom it asks nothing (docs/policies.md)."""

from typing import Literal

from pydantic import field_validator, model_validator

from sluicegate.config.kinds import Bytes, Flag, Pattern, Text
from sluicegate.config.section import Section

_ASKS = ("acks", "codecs", "idempotent", "client_id", "max_batch_bytes", "software")


class RequestMatch(Section):
    """Which batches a rule concerns: all that are given must match; what is not given matches everything."""

    topics: Pattern | None = None
    client_id: Pattern | None = None
    principal: Pattern | None = None


class Software(Section):
    """A client library by the name that it gives itself, and the version from which on it is taken."""

    name: Pattern
    min_version: Text

    @field_validator("min_version")
    @classmethod
    def _has_numbers(cls, value: str) -> str:
        if not value[:1].isdigit():
            raise ValueError(f"expected a version, as 2.3 or 3.7.0; found {value!r}")
        return value


class RequestRule(Section):
    """What a batch's request must be like; what is not given is not asked."""

    name: Text
    mode: Literal["reject", "observe"] = "reject"
    match: RequestMatch = RequestMatch()
    acks: tuple[Literal["all", "1", "0"], ...] | None = None
    codecs: tuple[Literal["none", "gzip", "snappy", "lz4", "zstd"], ...] | None = None
    idempotent: Flag = False
    client_id: Pattern | None = None
    max_batch_bytes: Bytes | None = None
    software: tuple[Software, ...] = ()

    @model_validator(mode="after")
    def _asks_something(self) -> "RequestRule":
        if not any(getattr(self, ask) for ask in _ASKS):
            raise ValueError(f"rule {self.name} asks for nothing; give it {', '.join(_ASKS[:-1])} or {_ASKS[-1]}")
        return self


class Exempt(Section):
    """Clients that are asked nothing; what is given must match, both where both are."""

    principal: Pattern | None = None
    client_id: Pattern | None = None

    @model_validator(mode="after")
    def _says_who(self) -> "Exempt":
        if self.principal is None and self.client_id is None:
            raise ValueError('expected whom, as principal: "User:mirror-maker" or client_id: "backfill-*"')
        return self


def check_request_names(rules: tuple[RequestRule, ...]) -> tuple[RequestRule, ...]:
    """Answers and metrics name rules. Raises ValueError for a name that stands there twice."""
    names = [rule.name for rule in rules]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two rules for requests are named {twice}; answers and metrics could not tell them apart")
    return rules
