"""Measures a proxy of a cluster whose topics all have sluicegate settings: start, memory, and descriptions.

The same proxy without topic settings in its cluster, and the broker itself, are measured in the same run.

Run: python -m bench.topic_policies [--topics N]. Writes topic_policies.json in bench/results and a table of
docs/performance.md. Needs a broker: make kafka
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from bench.ending import end_on_sigterm
from bench.figures import PAGE, RESULTS, Figure, fill_in, goals_table, write_json
from bench.machine import resident_of
from bench.targets import broker
from tests.broker.proxy_process import ProxyProcess

_FILE = RESULTS / "topic_policies.json"
_SECONDS = 110
_AT_ONCE = 500
_STATE = "sluicegate-state"
_SETTINGS = {"sluicegate.mode": "observe", "sluicegate.samples": "true"}


def seconds_of(work: Callable[[], object]) -> float:
    """Return how many seconds a call takes."""
    began = time.monotonic()
    work()
    return time.monotonic() - began


def create_topics(address: str, names: list[str], settings: dict[str, str]) -> None:
    """Create topics of one partition, some at a time."""
    client = AdminClient({"bootstrap.servers": address, "socket.timeout.ms": _SECONDS * 1000})
    for first in range(0, len(names), _AT_ONCE):
        wanted = [NewTopic(name, 1, 1, config=settings) for name in names[first : first + _AT_ONCE]]
        for created in client.create_topics(wanted, request_timeout=_SECONDS).values():
            created.result(_SECONDS)


def describe(address: str, names: list[str]) -> int:
    """Describe the settings of topics in one request, and return how many settings they have."""
    client = AdminClient({"bootstrap.servers": address, "socket.timeout.ms": _SECONDS * 1000})
    wanted = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
    described = client.describe_configs(wanted, request_timeout=_SECONDS)
    return sum(len(each.result(_SECONDS)) for each in described.values())


def change_mode(address: str, name: str) -> None:
    """Change the mode of one topic."""
    client = AdminClient({"bootstrap.servers": address})
    entry = ConfigEntry("sluicegate.mode", "reject", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(_SECONDS)


def proxy_of_shared_state(folder: Path, address: str) -> ProxyProcess:
    """Return a proxy that reads topic settings, with its defaults otherwise."""
    folder.mkdir()
    proxy = ProxyProcess(folder, address, {"log": {"level": "error"}, "violations": {}})
    proxy.environment = {}
    proxy.config |= {"state": {"topic": _STATE}, "topic_policies": [{"topics": ["t-*"], "keys": ["*"]}]}
    return proxy


def resident_mb(proxy: ProxyProcess) -> float:
    """Return the resident memory of a proxy of one process."""
    assert proxy.process is not None
    return resident_of(proxy.process.pid) / 1e6


def measure(folder: Path, address: str, topics: int) -> list[Figure]:
    """Measure a proxy before and after the topics get their settings."""
    create_topics(address, [_STATE, f"{_STATE}-history", f"{_STATE}-presence"], {"cleanup.policy": "compact"})
    names = [f"t-{number}" for number in range(topics)]
    proxy = proxy_of_shared_state(folder / "proxy", address)
    load = f"{topics:,} topics"
    try:
        start_before = seconds_of(proxy.start)
        memory_before = resident_mb(proxy)
        creation = seconds_of(lambda: create_topics(proxy.bootstrap, names, _SETTINGS))
        proxy.stop()
        start_after = seconds_of(proxy.start)
        memory_after = resident_mb(proxy)
        at_broker = seconds_of(lambda: describe(address, names))
        settings = describe(address, names)
        at_proxy = seconds_of(lambda: describe(proxy.bootstrap, names))
        added = describe(proxy.bootstrap, names) - settings
        if added < topics * len(_SETTINGS):
            raise RuntimeError(f"only {added} settings of sluicegate were described")
        memory_described = resident_mb(proxy)
        change = seconds_of(lambda: change_mode(proxy.bootstrap, names[-1]))
    finally:
        proxy.stop()
    return [
        Figure("start until ready, more than without settings", load, start_after - start_before, "s", 5),
        Figure("resident memory, more than without settings", load, memory_after - memory_before, "MB", 64),
        Figure("resident memory after all were described", load, memory_described - memory_before, "MB", 160),
        Figure("DescribeConfigs of all in one request, proxy / broker", load, at_proxy / at_broker, "", 5),
        Figure("one change of one topic", load, change, "s", 2),
        Figure("creation with settings in requests of 500", load, creation, "s"),
    ]


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--dry-run", action="store_true", help="write no results")
    options = parser.parse_args()
    end_on_sigterm()
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as (address, _, _):
        figures = measure(Path(folder), address, options.topics)
    for figure in figures:
        print(f"{figure.figure}: {figure.value:.2f} {figure.unit}")
    if not options.dry_run:
        write_json(_FILE, figures)
        fill_in(PAGE, "topic-policies", goals_table(figures))


if __name__ == "__main__":
    main()
