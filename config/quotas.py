"""The section `quotas`: how much clients may produce, or topics receive (docs/quotas.md)."""

from sluicegate.config.mistakes import raise_all
from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import Bytes, OneOrMore, Pattern, Text, TopicPattern

_LIMITS = ("bytes_per_second", "requests_per_second", "connections")


@section
class Quota:
    """A limit on Produce requests.

    It applies to each client that the patterns match (a client id, a principal, or a pair of both), or to each matching
    topic over all clients. The first matching quota applies, for the client and for the topic.
    """

    name: Text = described("The name of the quota in metrics and log lines.")
    client_id: Pattern | None = described(
        "A pattern of client ids. Each matching client id has its own quota.", default=None
    )
    principal: Pattern | None = described(
        "A pattern of principals, for example `User:*`. Each principal has its own quota. With `client_id`, each "
        "combination of a client id and a principal has its own quota.",
        default=None,
    )
    topic: TopicPattern | None = described(
        "A pattern of topic names. Each matching topic has its own quota. Cannot be combined with `client_id` or "
        "`principal`.",
        default=None,
    )
    bytes_per_second: Bytes | None = described(
        "The maximum rate of Produce bytes. Clients above it are throttled.", default=None
    )
    requests_per_second: OneOrMore | None = described(
        "The maximum rate of Produce requests. Clients above it are throttled.", default=None
    )
    connections: OneOrMore | None = described(
        "The maximum number of connections that send Produce requests. Each further connection is closed at its "
        "first Produce request.",
        default=None,
    )

    def __post_init__(self) -> None:
        of_client = self.client_id is not None or self.principal is not None
        if of_client == (self.topic is not None):
            raise ValueError(
                f'quota {self.name}: expected client_id: "etl-*" or principal: "User:*" (or both), or topic: '
                '"orders.*" alone'
            )
        if self.topic is not None and self.connections is not None:
            raise ValueError(
                f"quota {self.name}: connections is only valid with client_id or principal, not with topic"
            )
        if all(getattr(self, key) is None for key in _LIMITS):
            raise ValueError(f"quota {self.name} sets no limit; add {', '.join(_LIMITS[:-1])} or {_LIMITS[-1]}")


def check_quota_names(quotas: tuple[Quota, ...]) -> tuple[Quota, ...]:
    """Check that names are unique, because metrics and log lines use them. Raises ValueError."""
    seen: set[str] = set()
    for i, quota in enumerate(quotas):
        if quota.name in seen:
            raise_all([((i, "name"), f"two quotas are named {quota.name}; names must be unique")])
        seen.add(quota.name)
    return quotas
