"""Runs the test suites of franz-go and librdkafka at a broker and through the proxy, and prints different results.

    [KAFKA=release] FRANZ_GO=checkout LIBRDKAFKA=checkout python -m tests.clients.peers_suites [TESTS]

It downloads nothing. A checkout is a folder on this machine. librdkafka's must be built (`./configure && make`, and
`make -C tests build`). TESTS selects tests: a pattern for `go test -run`, or librdkafka's numbers (0001,0012). KAFKA is
the release of the broker. Each run of a suite has a new broker, and its output is in build/peers-suites. The exit
status is 1 if a test passes at the broker but not through the proxy.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.oracle.kafka_java import KAFKA_NEW, ROOT

Results = dict[str, str]
"""Each test with its result in the suite's own words: pass or passed, fail or failed, skip or skipped."""
_KAFKA = os.environ.get("KAFKA", KAFKA_NEW)
_OUTPUT = ROOT / "build/peers-suites"
_PASSED = ("pass", "passed")
_START_SECONDS = 300
_REPORTED = re.compile(r'"name": "(\d{4}_[^"]+)", "state": "([^"]+)"')


def franz_go(checkout: Path, bootstrap: str, selected: str, _folder: Path, output: Path) -> Results:
    """Run the tests of the client itself. KGO_TEST_RECORDS is the suite's own variable; a slow machine needs fewer."""
    command = ["go", "test", "-count=1", "-json", "-timeout=60m", "./pkg/kgo/..."]
    environment = {"KGO_TEST_RECORDS": "50000", **os.environ, "KGO_SEEDS": bootstrap, "KGO_TEST_RF": "1"}
    with output.open("w") as file:
        subprocess.run(
            command + (["-run", selected] if selected else []),
            cwd=checkout, env=environment, stdout=file, stderr=file, check=False,
        )  # fmt: skip
    events = [json.loads(line) for line in output.read_text().splitlines() if line.startswith("{")]
    ended = [event for event in events if event["Action"] in ("pass", "fail", "skip") and "Test" in event]
    return {event["Test"]: event["Action"] for event in ended}


def librdkafka(checkout: Path, bootstrap: str, selected: str, folder: Path, output: Path) -> Results:
    """Run the tests that need a broker, in their quick form, one after another."""
    settings, report = folder / "test.conf", folder / "report.json"
    settings.write_text(f"bootstrap.servers={bootstrap}\n")
    environment = {
        **os.environ, "LD_LIBRARY_PATH": f"{checkout}/src:{checkout}/src-cpp", "RDKAFKA_TEST_CONF": str(settings),
        "TEST_REPORT": str(report), "TEST_KAFKA_VERSION": _KAFKA, **({"TESTS": selected} if selected else {}),
    }  # fmt: skip
    command = ["./test-runner", "-p1", "-L", "-Q", "-E"]
    with output.open("w") as file:
        subprocess.run(command, cwd=checkout / "tests", env=environment, stdout=file, stderr=file, check=False)
    return {name: state.lower() for name, state in _REPORTED.findall(report.read_text())}


SUITES: dict[str, Callable[[Path, str, str, Path, Path], Results]] = {"FRANZ_GO": franz_go, "LIBRDKAFKA": librdkafka}


@contextmanager
def run_broker_or_proxy(folder: Path, *, is_proxied: bool) -> Iterator[str]:
    """Yield the address for clients: of a new broker, or of a proxy in front of it, with defaults."""
    folder.mkdir()
    broker = Kafka(_KAFKA, folder / "kafka")
    proxy: ProxyProcess | None = None
    try:
        broker.start()
        load_coordinators(broker.bootstrap)
        if is_proxied:
            proxy = ProxyProcess(folder, broker.bootstrap)
            proxy.start_seconds = _START_SECONDS
            proxy.start()
        yield broker.bootstrap if proxy is None else proxy.bootstrap
    finally:
        if proxy is not None:
            proxy.stop()
        broker.stop()


def load_coordinators(bootstrap: str) -> None:
    """Wait until the broker has created and loaded its groups: until then, tests that ask it only once fail."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "first"})
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def is_coordinator_ready() -> bool:
        try:
            consumer.committed([TopicPartition("first", 0)], timeout=10)  # creates __consumer_offsets
        except KafkaException:
            return False
        return admin.list_consumer_groups().result().errors == []

    eventually(is_coordinator_ready, _START_SECONDS)
    consumer.close()


def different_results(direct: Results, through: Results) -> list[str]:
    """Return a line for each test whose results differ."""
    return [
        f"  {name}: {direct.get(name, 'not run')} at the broker, {through.get(name, 'not run')} through the proxy"
        for name in sorted(direct.keys() | through.keys())
        if direct.get(name) != through.get(name)
    ]


def compare_suite(suite: str, checkout: Path, selected: str) -> bool:
    """Run a suite twice and print its results. Return whether every test that passed at the broker passed again."""
    both: list[Results] = []
    _OUTPUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        for run, is_proxied in enumerate((False, True)):
            folder = Path(place, str(run))
            with run_broker_or_proxy(folder, is_proxied=is_proxied) as bootstrap:
                output = _OUTPUT / f"{suite}-{'through-the-proxy' if is_proxied else 'at-the-broker'}.log"
                both.append(SUITES[suite](checkout, bootstrap, selected, folder, output))
    direct, through = both
    for where, results in (("at the broker", direct), ("through the proxy", through)):
        counted = {state: list(results.values()).count(state) for state in sorted(set(results.values()))}
        counts = ", ".join(f"{count} {state}" for state, count in counted.items()) or "no tests"
        print(f"{suite} on Kafka {_KAFKA} {where}: {counts}")
    print("\n".join(different_results(direct, through)) or "  no difference", flush=True)
    passed = {name for name, state in direct.items() if state in _PASSED}
    return bool(direct) and all(through.get(name) in _PASSED for name in passed)


def main(arguments: list[str]) -> None:
    given = {suite: Path(os.environ[suite]).resolve() for suite in SUITES if os.environ.get(suite)}
    if not given:
        sys.exit(f"name a checkout: {' or '.join(f'{suite}=FOLDER' for suite in SUITES)}")
    results = [compare_suite(suite, checkout, *(arguments or [""])) for suite, checkout in given.items()]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
