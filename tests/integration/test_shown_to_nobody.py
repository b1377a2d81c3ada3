"""Neither secrets nor active content in names are shown.

A running proxy at debug level has a planted secret in every key that accepts one, peers that echo their requests, and
clients with names that try to control a terminal, a log or the web UI.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.broker.eventually import eventually
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.registry.stand_in import StandIn, http_response
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import API_VERSIONS, PRODUCE, RawClient, produce_body, topic_data
from tests.wire.unparsed_messages import API_VERSIONS_REQUEST

SECRETS = {
    "a login at brokers": "hunter2-upstream",
    "a login at a registry": "hunter2-registry",
    "a file's login at a registry": "hunter2-file",
    "what a receiver of OTLP wants": "hunter2-otlp",
    "the admin token": "hunter2-token",
    "a wrong token": "hunter2-wrong",
    "a key's password": "hunter2-key",
}
# Names with terminal controls, line ends, a script, bidirectional controls, and the end of a metric's label.
EVIL = '\x1b]0;gone\x07\x1b[2J\r\nevent: forged\x9b31m\u202eknil\u2066\u200b<script>alert(1)</script>"} 1\u2028'
RAW = ("\x1b", "\x07", "\r", "\x9b", "\u202e", "\u2066", "\u2028")
DUMPS = """import faulthandler, signal
faulthandler.register(signal.SIGUSR1)
from sluicegate.proxy.cli.main import main
main()"""


def echo_headers(client: socket.socket, head: bytes) -> bool:
    """Reject a request and echo its headers, like a debug page."""
    headers = [line for line in head.split(b"\r\n") if b":" in line]
    client.sendall(http_response("401 Unauthorized", head, *(f"X-Echo-{line.decode('latin-1')}" for line in headers)))
    return False


@pytest.fixture(scope="module")
def proxy(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    folder = tmp_path_factory.mktemp("proxy")
    (folder / "password").write_text(SECRETS["a file's login at a registry"] + "\n")
    with ExitStack() as stack:
        registry, receiver = stack.enter_context(StandIn(echo_headers)), stack.enter_context(StandIn(echo_headers))
        login = {"mechanism": "PLAIN", "username": "me", "password": SECRETS["a login at brokers"]}
        rules = [
            {"name": name, "value": {"schema": {"registry": name, "subject": "any"}}} for name in ("main", "by-file")
        ]
        settings: dict[str, Any] = {
            "defaults": DEFAULTS,
            "log": {"level": "debug"},
            "topics": [{"match": "ruled-*", "rules": rules}],
            "registries": {
                "main": {"url": registry.url, "username": "me", "password": SECRETS["a login at a registry"]},
                "by-file": {"url": registry.url, "username": "me", "password_file": str(folder / "password")},
            },
            "otel": {
                "endpoint": receiver.url,
                "headers": f"authorization=Bearer%20{SECRETS['what a receiver of OTLP wants']}",
                "metrics_interval_seconds": 1,
                "traces_per_second": 100,
            },
        }
        process = ProxyProcess(folder, kafka_bootstrap, settings)
        process.config["upstream"] |= {
            "sasl": login,
            "brokers": {"1": kafka_bootstrap},
        }  # not discoverable with this login
        process.config["admin"]["token"] = SECRETS["the admin token"]
        process.command = [sys.executable, "-c", DUMPS]
        try:
            yield process.start()
        finally:
            process.stop()


def live_data(proxy: ProxyProcess, token: str) -> str:
    """Return the data of the web UI, or the rejection."""
    asked = urllib.request.Request(f"{proxy.admin}/api/live", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(asked, timeout=10) as response:
            return str(response.read().decode())
    except urllib.error.HTTPError as rejected:
        with rejected:
            return str(rejected.read().decode())


def send_record(proxy: ProxyProcess, topic: str, client_id: str, value: bytes = b"v", software: str = "raw") -> None:
    with RawClient(f"127.0.0.1:{proxy.broker_port(1)}", 30) as client:
        names = {"client_software_name": software, "client_software_version": software}
        asked = client.send(API_VERSIONS, 3, API_VERSIONS_REQUEST.build(names, 3), client_id)
        client.receive(30)
        now = time.time_ns() // 1_000_000
        for timestamp in (now, now * 1000):
            data = batch([Rec(timestamp, b"k", value)])
            asked = client.send(PRODUCE, 9, produce_body(9, [topic_data(topic, (0, data))]), client_id)
            assert asked and client.receive(30)


def terminal_output(proxy: ProxyProcess, *command: str) -> str:
    """Return the output of a command in a terminal."""
    token = proxy.folder / "token"
    token.write_text(SECRETS["the admin token"])
    environment = os.environ | {"COLUMNS": "500", "LINES": "200", "NO_COLOR": "1"}
    done = subprocess.run(
        [COMMAND, *command, "--token-file", str(token)], capture_output=True, text=True, env=environment, check=False
    )
    return done.stdout + done.stderr


def everything_shown(proxy: ProxyProcess, topic: str) -> dict[str, str]:
    """Return everything that is shown, by place."""
    admin = proxy.admin.removeprefix("http://")
    events = str(proxy.config["violations"]["file"])
    return {
        "log": proxy.log(),
        "metrics": proxy.get("/metrics")[1],
        "readyz": proxy.get("/readyz")[1],
        "events": Path(events).read_text(),
        "web UI": live_data(proxy, SECRETS["the admin token"]),
        "web UI, rejected": live_data(proxy, SECRETS["a wrong token"]),
        "who, of a file": terminal_output(proxy, "who", topic, "--events", events),
        "who": terminal_output(proxy, "who", topic, "--admin", admin),
        "top": terminal_output(proxy, "top", admin, "--once"),
    }


@pytest.mark.long
def test_no_planted_secret_is_shown(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="ruled")
    for schema_id in range(4):
        send_record(proxy, topic, "app", b"\0" + schema_id.to_bytes(4) + b"x")
    eventually(lambda: proxy.metric("sluicegate_registry_failures_total") > 0, what="a login rejected by the registry")
    eventually(lambda: proxy.metric("sluicegate_otel_metric_exports_total") > 0, what="exported metrics")
    eventually(lambda: "own_login" in proxy.log() or "SASL" in proxy.log() or "login" in proxy.log())
    proxy.wait_for_violations(topic, 1)
    assert proxy.process is not None
    proxy.process.send_signal(signal.SIGUSR1)
    proxy.wait_for_line("most recent call first")

    found = everything_shown(proxy, topic)

    assert all("app" in found[where] for where in ("web UI", "events", "who", "who, of a file", "top"))
    for where, text in found.items():
        for what, secret in SECRETS.items():
            assert secret not in text, f"{what} is in {where}"


@pytest.mark.long
def test_names_chosen_by_clients_are_shown_as_text(kafka_bootstrap: str, proxy: ProxyProcess) -> None:
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1)
    send_record(proxy, topic, EVIL, software=EVIL)
    send_record(proxy, EVIL, EVIL, software="raw")
    proxy.wait_for_violations(topic, 1)
    eventually(lambda: "script" in proxy.get("/metrics")[1], what="a label that names the client")

    found = everything_shown(proxy, topic)

    for where, text in found.items():
        for raw in RAW:
            assert raw not in text, f"{raw!r} in {where}"
        assert not any(line.startswith("event: forged") for line in text.splitlines()), where
    assert "script" in found["events"], "the page shows the name as text"
    for line in found["events"].splitlines():
        json.loads(line)
    for family in text_string_to_metric_families(found["metrics"]):
        assert family.name.startswith(("sluicegate_", "kafka_", "python_", "process_")), family


def test_a_password_that_opens_no_key_is_not_shown(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n")
    file = tmp_path / "sluicegate.yaml"
    tls = {"certificate_file": str(key), "key_file": str(key), "key_password": SECRETS["a key's password"]}
    file.write_text(
        json.dumps({"upstream": {"bootstrap": ["127.0.0.1:9"]}, "listen": {"bootstrap": "127.0.0.1:1", "tls": tls}})
    )

    done = subprocess.run([COMMAND, "check", str(file)], capture_output=True, text=True, check=False)

    assert done.returncode != 0 and "key.pem" in done.stdout + done.stderr
    assert SECRETS["a key's password"] not in done.stdout + done.stderr
