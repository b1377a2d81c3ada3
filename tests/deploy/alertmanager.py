"""Runs a real Alertmanager from Debian's package, and a webhook that stores its notifications."""

import json
import shutil
import signal
import subprocess
import threading
import urllib.request
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports

_PROGRAM = "prometheus-alertmanager"
NEEDS_ALERTMANAGER = pytest.mark.skipif(
    shutil.which(_PROGRAM) is None, reason=f"there is no Alertmanager: install Debian's package `{_PROGRAM}`"
)


@dataclass(frozen=True)
class AlertNotice:
    """A notification about one alert. `status`: firing or resolved; times as Alertmanager writes them (RFC 3339)."""

    status: str
    labels: dict[str, str]
    annotations: dict[str, str]
    starts_at: str
    ends_at: str

    @property
    def name(self) -> str:
        return self.labels["alertname"]


class Alertmanager:
    """An Alertmanager that sends the start and the end of each alert to a webhook of this process, one alert at a
    time."""

    def __init__(self, folder: Path) -> None:
        self.notices: list[AlertNotice] = []
        self._folder = folder
        self._port = free_ports(1)
        self._webhook = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> "Alertmanager":
        threading.Thread(target=self._webhook.serve_forever, daemon=True).start()
        hook = {"url": f"http://127.0.0.1:{self._webhook.server_port}/", "send_resolved": True}
        route = {"receiver": "test", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s"}
        config = {"route": route, "receivers": [{"name": "test", "webhook_configs": [hook]}]}
        (self._folder / "alertmanager.yaml").write_text(yaml.safe_dump(config))
        with (self._folder / "alertmanager.log").open("wb") as log:
            self._process = subprocess.Popen(
                killed_with_parent(
                    [
                        _PROGRAM,
                        f"--config.file={self._folder / 'alertmanager.yaml'}",
                        f"--storage.path={self._folder / 'alerts'}",
                        f"--web.listen-address={self.address}",
                        "--cluster.listen-address=",
                    ]
                ),
                stdout=log,
                stderr=log,
            )
        eventually(self._is_ready, what=f"Alertmanager is ready; see {self._folder / 'alertmanager.log'}")
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(60)
            self._webhook.shutdown()
        self._webhook.server_close()

    def wait_for(self, status: str, **labels: str) -> AlertNotice:
        """Wait for a notice with this status and these labels and return it."""
        wanted = labels.items()
        found = eventually(
            lambda: [each for each in self.notices if each.status == status and wanted <= each.labels.items()],
            what=f"{status}: {labels}",
        )
        return found[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        notices = self.notices

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                notices.extend(_notice(alert) for alert in message["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_arguments: object) -> None:
                """Log nothing."""

        return Handler

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "alertmanager.log").read_text()[-2000:]
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5) as response:
                return bool(response.status == 200)
        except OSError:
            return False


def _notice(alert: dict[str, Any]) -> AlertNotice:
    return AlertNotice(alert["status"], alert["labels"], alert["annotations"], alert["startsAt"], alert["endsAt"])
