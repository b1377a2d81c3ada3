"""Runs sluicegate as users do: in a separate process, configured by a file."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, ClassVar

import yaml

from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.wire.published_schema import schema_mismatches

_START_SECONDS = 90
FROZEN_CLOCK = """from sluicegate.proxy.server import clock
clock.now_ms = lambda: {at}
from sluicegate.proxy.cli.main import main
main()"""
"""A program that runs sluicegate with a frozen clock (ms)."""

HAND_OVER = """import fcntl, os, sys
descriptors = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 100) for each in sys.argv[1].split(",")]
for place, descriptor in enumerate(descriptors, 3):
    os.dup2(descriptor, place)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(descriptors))}
os.execv(sys.argv[2], sys.argv[2:])"""
"""A program that starts another as systemd does: the descriptors in its first argument become 3, 4 and so on."""

COMMAND = str(Path(sys.executable).with_name("sluicegate"))


class ProxyProcess:
    """A proxy on free ports in front of `upstream`; `settings` are merged into its configuration."""

    started: ClassVar[dict[Path, "ProxyProcess"]] = {}
    """The proxies in this test run, by their logs."""

    def __init__(self, folder: Path, upstream: str, settings: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.command = [COMMAND]
        # asyncio's debug mode raises errors for calls from a wrong thread or into a closed loop.
        self.environment = {"PYTHONASYNCIODEBUG": "1"}
        first = free_ports(16)
        self.config: dict[str, Any] = {
            "upstream": {"bootstrap": upstream.split(","), "refresh_seconds": 1},
            "listen": {"bootstrap": f"127.0.0.1:{first}", "broker_port_base": first + 2},
            "admin": {"listen": f"127.0.0.1:{first + 1}"},
            "violations": {"file": str(folder / "violations.jsonl")},
            "drain_timeout_seconds": 10,
            **(settings or {}),
        }
        self.bootstrap = self.config["listen"]["bootstrap"]
        self.admin = f"http://127.0.0.1:{first + 1}"
        self.process: subprocess.Popen[bytes] | None = None
        self.start_seconds = _START_SECONDS
        self.sockets: list[socket.socket] = []
        """Sockets that the process inherits."""

    def broker_port(self, node_id: int) -> int:
        port: int = self.config["listen"]["broker_port_base"]
        return port + node_id

    def start(self, ready: bool = True, stderr: int | None = None) -> "ProxyProcess":
        file = self.folder / "sluicegate.yaml"
        file.write_text(yaml.safe_dump(self.config, sort_keys=False))
        path = self.folder / "proxy.log"
        self.started[path] = self
        with path.open("ab") as log:
            environment = {k: v for k, v in os.environ.items() if not k.startswith("SLUICEGATE__")}
            descriptors = [each.fileno() for each in self.sockets]
            handing = [sys.executable, "-c", HAND_OVER, ",".join(map(str, descriptors))] if descriptors else []
            self.process = subprocess.Popen(
                killed_with_parent([*handing, *self.command, "run", "--config", str(file)]),
                stderr=log if stderr is None else stderr,
                stdout=log,
                env=environment | self.environment,
                pass_fds=descriptors,
            )
        self._wait_for("/readyz" if ready else "/livez")
        return self

    def get(self, path: str) -> tuple[int, str]:
        """Return status and text of an admin path, or (0, reason) if there is no response."""
        try:
            with urllib.request.urlopen(self.admin + path, timeout=5) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def metric(self, name: str) -> float:
        """Return a metric's value, the sum over all labels."""
        lines = [line for line in self.get("/metrics")[1].splitlines() if line.startswith((name + " ", name + "{"))]
        return sum(float(line.rpartition(" ")[2]) for line in lines)

    def violations(self) -> list[dict[str, Any]]:
        file = Path(self.config["violations"]["file"])
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]  # the last line may be incomplete

    def violations_of(self, topic: str) -> list[dict[str, Any]]:
        return [event for event in self.violations() if event["topic"] == topic]

    def wait_for_violations(self, topic: str, count: int) -> list[dict[str, Any]]:
        """Wait for `count` events of a topic and return them; a thread writes them after the response."""
        eventually(lambda: len(self.violations_of(topic)) >= count, what=f"{count} events for {topic}")
        events = self.violations_of(topic)
        for event in events:
            assert schema_mismatches(event) == [], event
        return events

    def log(self) -> str:
        return (self.folder / "proxy.log").read_text()

    def wait_for_line(self, text: str) -> str:
        """Wait for a log line that contains `text` and return it; a thread of the proxy writes the log."""
        eventually(lambda: text in self.log(), what=f"a log line with {text!r}")
        return next(line for line in self.log().splitlines() if text in line)

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def terminate(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def _wait_for(self, page: str) -> None:
        end = time.monotonic() + self.start_seconds
        while time.monotonic() < end:
            assert self.process is not None
            assert self.process.poll() is None, f"sluicegate ended:\n{self.log()}"
            if self.get(page)[0] == 200:
                return
            time.sleep(0.05)  # only the admin endpoint reports readiness
        raise AssertionError(f"{page} was not successful within {self.start_seconds} s:\n{self.log()}")
