"""Runs a stand-in for a proxy with 200 clients and 300 topics, which sends its live state every second."""

import time
from contextlib import closing
from typing import Any

from sluicegate.config.values.address import HostPort
from sluicegate.config.values.password import Password, SecretText
from sluicegate.proxy.admin.endpoint import AdminServer
from sluicegate.proxy.live.flow_history import Flow
from sluicegate.proxy.live.live_snapshot import LiveQuery
from sluicegate.proxy.live.live_state import ConnectionState, LiveState
from sluicegate.proxy.live.live_view import LiveView
from sluicegate.proxy.reload.policy_history import PolicyReload
from sluicegate.proxy.reporting.metrics.counters import Counters
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.proxy.webui.access import Access
from sluicegate.proxy.webui.site import Site
from sluicegate.validation.rules.rule import Mode
from sluicegate.validation.verdict import Reason
from tests.proxy.live.events import rejected_event
from tests.proxy.live.test_merged_state import state_with

CLIENTS, TOPICS = 200, 300
QUIET_TOPICS = 40
"""Topics without violations."""
_SOFTWARE = ("apache-kafka-java 4.3.1", "librdkafka 2.16.0", "kgo v1.22.2", None)
_BROKERS = 3
_KNOWN_SECONDS = 400


def client_id_of_number(number: int) -> str:
    """Return a client id; every tenth is long."""
    return f"team-{number % 40}.service-{number}" + (".a-long-suffix" * 12 if number % 10 == 0 else "")


def topic_name_of_number(number: int) -> str:
    return f"domain-{number % 12}.events-{number}" + ("-v1" * 60 if number % 25 == 0 else "")


class LargeProxy:
    """A proxy that started `_KNOWN_SECONDS` ago. Each read of its state adds the traffic since the last read."""

    def __init__(self, known_seconds: int = _KNOWN_SECONDS) -> None:
        now_ms = time.time_ns() // 1_000_000
        self._at = now_ms // 1000 - known_seconds
        self.view = LiveView(Counters(), None, now_ms - 1000 * known_seconds)
        self._records = self._rejected = 0
        for number in range(TOPICS):
            self._violate(number, now_ms - 1000 * (known_seconds + TOPICS - number))

    def _violate(self, number: int, now_ms: int) -> None:
        mode = Mode.OBSERVE if number % 3 == 0 else Mode.REJECT
        reason = Reason.NULL_KEY if number % 5 == 0 else Reason.TIMESTAMP_IN_FUTURE
        peer = f"192.0.2.{number % CLIENTS}:40000"
        timestamp = now_ms if reason is Reason.NULL_KEY else now_ms * 1_000_000
        name, where = client_id_of_number(number % CLIENTS), topic_name_of_number(number)
        self.view.write(rejected_event(name, where, reason, now_ms, mode=mode, peer=peer, timestamp=timestamp))

    def _write(self, now_ms: int) -> None:
        """Count the traffic of 10 s."""
        self.view.topics.tick(now_ms)
        self.view.clients.tick(now_ms)
        for number in range(TOPICS):
            self.view.sent_to(topic_name_of_number(number), 20 + 10 * (number % 9), 400 * number, 90_000 * number)
        for number in range(CLIENTS):
            self.view.sent_by(client_id_of_number(number), 30 + 10 * (number % 7), 600 * number, 120_000 * number)
        for number in range(QUIET_TOPICS):
            self.view.topics.seen(f"quiet-{number}")

    def read_state(self, query: LiveQuery) -> LiveState:
        now_ms = time.time_ns() // 1_000_000
        while self._at < now_ms // 1000:
            self._at += 1
            self._records += 4000 + 900 * (self._at % 60)
            self._rejected += self._at % 7
            flow = Flow(self._records // 50, self._records, self._records * 210, self._rejected, self._rejected, 3)
            self.view.history.add(self._at, flow)
            self._violate(self._at % TOPICS, 1000 * self._at)
            self._violate(7, 1000 * self._at + 500)
            if self._at % 10 == 0:
                self._write(1000 * self._at)
        state = state_with(self.view, [], now_ms, query=query)
        listed = [self._connection(number) for number in range(CLIENTS + 30)]
        for group in state["violation_groups"]:
            group["example"]["owner"] = {"team": str(group["topic"]).partition(".")[0], "contact": "#help"}
            group["example"]["client_owner"] = {"team": "shop", "contact": "#shop"}
        return {
            **state,
            "totals": {"requests": self._records // 50, "records": self._records, "size": self._records * 210}
            | {"rejected": self._rejected, "rejected_records": self._rejected, "observed": 3},
            "connections": {"count": len(listed), "by_state": {"open": len(listed)}, "listed": listed},
        }

    def _connection(self, number: int) -> ConnectionState:
        return {
            "client_address": f"192.0.2.{number % CLIENTS}:{40000 + number}",
            "client_id": client_id_of_number(number % CLIENTS),
            "software": _SOFTWARE[number % len(_SOFTWARE)],
            "principal": f"User:team-{number % 40}" if number % 2 else None,
            "owner": {"team": "shop", "contact": "#shop"} if number % 2 else None,
            "broker": f"broker {1 + number % _BROKERS}",
            "state": "open",
            "pause_reasons": ["quota"] if number % 50 == 3 else [],
            "in_flight": number % 4,
            "received": self._records * (1 + number % 9),
        }


def policy_of(name: str) -> dict[str, Any]:
    """Return an effective policy (docs/web-ui.md)."""
    after = {"key": "message.timestamp.after.max.ms", "value": 600_000, "source": "cluster topic setting"}
    return {
        "topic": name,
        "lines": [f"{name}: policy", "  mode  reject"],
        "effective": [
            {**after, "place": "sluicegate.yaml:9", "path": f"defaults.{after['key']}", "configured": 7_200_000},
            {"key": "mode", "value": "reject", "source": "sluicegate default", "place": None, "path": None},
        ],
        "source": {"entry": None, "match": None, "place": None, "cluster_settings": "read", "reason": None},
    }


def policy_changes() -> list[dict[str, Any]]:
    """Return changes of policies (docs/web-ui.md)."""
    topic = topic_name_of_number(25)
    long = f"{topic}: looser: message.timestamp.after.max.ms 60000 -> 3600000 (policies/a.yaml:9, topics[0].mode)"
    reload = PolicyReload(
        time.time_ns() // 1_000_000,
        {"/etc/sluicegate/policies/a.yaml": "0f" * 32, "b.yaml": None},
        {"looser": [long]},
        9,
    )
    return [reload.as_json(), PolicyReload(reload.time_ms - 5000, {"c.yaml": "1a" * 32}).as_json()]


def serve_web_ui(proxy: LargeProxy, port: int = 0, token: str | None = None) -> "closing[AdminServer]":
    """Serve the web UI of `proxy` until the block ends."""
    password = None if token is None else Password("admin.token_file", SecretText(token), None)
    site = Site(Access(HostPort("127.0.0.1", 1), password), proxy.read_state, policy_of, read_reloads=policy_changes)
    status = Status()
    status.end(Condition.STARTING)
    return closing(AdminServer(HostPort("127.0.0.1", port), list, status, lambda: site))
