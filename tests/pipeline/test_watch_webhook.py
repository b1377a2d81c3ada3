"""Findings are posted to webhook servers, some of which do not respond."""

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline import watch
from sluicegate.pipeline.jobs.watch.webhook import BadWebhook, Webhook, webhook_at
from tests.broker.ports import free_ports
from tests.pipeline.test_watch import Writer

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]


class WebhookServer:
    """A server that stores the posted findings and responds with `status`."""

    def __init__(self) -> None:
        self.status = 200
        self.arrived: list[tuple[str, dict[str, Any]]] = []
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if hook.status == 200:
                    hook.arrived.append((self.path, body))
                self.send_response(hook.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/hook?key=secret"
        Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def webhook_server() -> Iterator[WebhookServer]:
    server = WebhookServer()
    yield server
    server.stop()


def webhook_with_short_timeout(server: socket.socket) -> Webhook:
    hook = webhook_at(f"http://127.0.0.1:{server.getsockname()[1]}/secret")
    return replace(hook, timeout_seconds=1.0)


def test_findings_are_posted_once_and_again_after_a_failure(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path, webhook_server: WebhookServer
) -> None:
    writer = Writer(kafka_bootstrap)

    def run_watch() -> tuple[str, ...]:
        return watch(spark, kafka_bootstrap, writer.topic, tmp_path, webhook=webhook_server.address).warnings

    webhook_server.status = 503
    writer.write(lambda now: now * 1000)
    assert run_watch() == ("the webhook at 127.0.0.1 responded 503",)
    writer.write(lambda now: now // 1000)
    assert run_watch() == ("the webhook at 127.0.0.1 responded 503",)
    webhook_server.status = 200
    assert run_watch() == ()
    assert run_watch() == ()

    ((path, body),) = webhook_server.arrived
    assert path == "/hook?key=secret"
    assert (body["version"], [found["what"] for found in body["findings"]]) == (1, ["microseconds", "seconds"])
    writer.write(lambda now: 0)
    assert run_watch() == ()
    assert [found["what"] for found in webhook_server.arrived[1][1]["findings"]] == ["zero"]


def test_a_slow_response_times_out() -> None:
    def drip_response() -> None:
        connection, _ = server.accept()
        with connection:
            try:
                while True:
                    connection.sendall(b"H")
                    time.sleep(0.05)  # while a client listens
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=drip_response, daemon=True)
        thread.start()
        begun = time.monotonic()

        trouble = webhook_with_short_timeout(server).send("w", [{"id": "1"}])

        assert trouble == "the webhook at 127.0.0.1 did not respond within 1 s"
        assert time.monotonic() - begun < 5
        thread.join(30)
        assert not thread.is_alive()


def test_a_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        trouble = webhook_with_short_timeout(server).send("w", [{"id": "1"}])

        assert trouble == "the webhook at 127.0.0.1 did not respond within 1 s"


def test_an_unreachable_webhook_is_reported_without_its_address() -> None:
    hook = webhook_at(f"http://127.0.0.1:{free_ports(1)}/secret")

    assert hook.send("w", [{"id": "1"}]) == "the webhook at 127.0.0.1 cannot be reached (ConnectionRefusedError)"
    assert "secret" not in repr(hook)


def test_many_findings_are_sent_a_hundred_at_a_time(webhook_server: WebhookServer) -> None:
    assert webhook_at(webhook_server.address).send("w", [{"id": str(n)} for n in range(250)]) is None

    assert [len(body["findings"]) for _, body in webhook_server.arrived] == [100, 100, 50]


@pytest.mark.parametrize("address", ["http://h/a b", "http://h/\x01", "http://", "h/x", "file:///etc/passwd"])
def test_rejects_invalid_webhook_addresses(address: str) -> None:
    with pytest.raises(BadWebhook):
        webhook_at(address)
