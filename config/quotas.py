"""How much clients may send, or topics be sent, and on how many connections (docs/quotas.md)."""

from sluicegate.config.section import described, section
from sluicegate.config.values.kinds import Bytes, OneOrMore, Pattern, Text

_SAYS = ("bytes_per_second", "requests_per_second", "connections")


@section
class Quota:
    """What may be sent with Produce by each client that it is about: each client id, each principal or each pair of
    both, as the patterns that are given name them; or to each topic, by all clients together. The first quota that is
    about a client holds, and the first that is about a topic.
    """

    name: Text = described("what metrics and log lines call it")
    client_id: Pattern | None = described("a pattern of client ids, each of which has a quota of its own", default=None)
    principal: Pattern | None = described(
        "a pattern of principals, as `User:*`, each of which has one; with `client_id`: each pair", default=None
    )
    topic: Pattern | None = described(
        "a pattern of topics' names, each of which has one; without the others", default=None
    )
    bytes_per_second: Bytes | None = described("of Produce requests; who sends more is made to wait", default=None)
    requests_per_second: OneOrMore | None = described("Produce requests; who sends more is made to wait", default=None)
    connections: OneOrMore | None = described(
        "connections that send Produce requests; further ones are closed at the first", default=None
    )

    def __post_init__(self) -> None:
        of_client = self.client_id is not None or self.principal is not None
        if of_client == (self.topic is not None):
            raise ValueError(
                f'quota {self.name}: expected whom, as client_id: "etl-*" or principal: "User:*" (or both), or topic: '
                '"orders.*", which stands alone'
            )
        if self.topic is not None and self.connections is not None:
            raise ValueError(f"quota {self.name}: connections are clients', not a topic's")
        if all(getattr(self, key) is None for key in _SAYS):
            raise ValueError(f"quota {self.name} allows everything; give it {', '.join(_SAYS[:-1])} or {_SAYS[-1]}")


def check_quota_names(quotas: tuple[Quota, ...]) -> tuple[Quota, ...]:
    """Metrics and log lines name quotas. Raises ValueError for a name that stands there twice."""
    names = [quota.name for quota in quotas]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two quotas are named {twice}; metrics could not tell them apart")
    return quotas
