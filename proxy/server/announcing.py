"""Creates this proxy's announcement to the cluster's other proxies."""

import hashlib
import json
import time
from collections.abc import Callable
from uuid import uuid4

from sluicegate.config.loading import Loaded
from sluicegate.config.model import POLICIES, Config
from sluicegate.proxy.reload.topic_explanation import PolicyQuery
from sluicegate.proxy.reporting.build_info import VERSION
from sluicegate.proxy.reporting.metrics.counters import Snapshot
from sluicegate.proxy.reporting.proxy_name import proxy_name
from sluicegate.proxy.state.presence import Presence
from sluicegate.proxy.status.status import Status, state_of

_DIGEST_CHARACTERS = 12


def announcement_of_proxy(
    config: Config, query: PolicyQuery, snapshot: Callable[[], Snapshot], status: Status
) -> Callable[[], Presence]:
    """Return a function that returns the current announcement.

    Only one thread may call it. `query` contains the policies in force.
    """
    instance, started_ms = uuid4().hex, _now_ms()
    admin = "" if config.admin.listen is None else str(config.admin.listen)
    of: Loaded | None = None
    policies = ""

    def announcement() -> Presence:
        nonlocal of, policies
        if query.loaded is not of:
            of = query.loaded
            policies = digest_of_policies(of)
        active, counters = status.active(), snapshot().counters
        return Presence(
            proxy_name(config),
            instance,
            started_ms,
            _now_ms(),
            admin,
            VERSION,
            policies,
            state_of(active).value,
            tuple(dict.fromkeys(each.condition.value for each in active)),
            {
                "connections": counters.connections_opened - counters.connections_closed,
                "produce_requests": counters.produce_requests,
                "accepted_records": counters.accepted_records,
                "violations": sum(counters.violations.values()),
            },
        )

    return announcement


def digest_of_policies(loaded: Loaded) -> str:
    """Return a short digest of the policies.

    Proxies with equal policies have equal digests, even if their addresses differ.
    """
    policies = {key: value for key, value in loaded.source.data.items() if key in POLICIES}
    text = json.dumps(policies, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]


def _now_ms() -> int:
    return time.time_ns() // 10**6
