"""Runs sluicegate in front of two stand-in brokers. Broker 1 receives the hostile input, broker 2 serves the honest
client.
"""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bounds.side_process import SideProcess
from tests.broker.certificates import Authority
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.broker.proxy_process import COMMAND, ProxyProcess
from tests.deploy.manifests import DEPLOY

HOST = "127.0.0.1"
_RESPONSES_SECONDS = 60
DEPLOYED = dict(re.findall(r"(MALLOC_\w+)=(\d+)", (DEPLOY / "systemd/sluicegate.service").read_text()))
"""The C library's settings in the systemd unit and the image. Without them, the library keeps the memory of large
requests."""
DEFAULTS = {"message.timestamp.before.max.ms": 86_400_000, "message.timestamp.after.max.ms": 3_600_000}


class Stage:
    """One proxy with its brokers; the sections of `config` are merged into a small configuration."""

    def __init__(
        self,
        folder: Path,
        broker: str = "sound",
        config: dict[str, Any] | None = None,
        tls: bool = False,
        shell: str | None = None,
    ) -> None:
        """`shell`: the shell command that starts the proxy, such as `ulimit -n 100; exec "$0" "$@"`."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        first = free_ports(2)
        nodes = {1: (HOST, first), 2: (HOST, first + 1)}
        self.ca_file: str | None = None
        self.honest: SideProcess | None = None
        files = None
        if tls:
            authority = Authority(folder)
            files = authority.sign("bounds").files
            self.ca_file = str(authority.file)
        self.target = SideProcess("tests.bounds.stand_in", node=1, nodes=nodes, mode=broker, tls=files)
        self.honest_broker = SideProcess("tests.bounds.stand_in", node=2, nodes=nodes, mode="sound", tls=files)
        self.proxy = ProxyProcess(folder, f"{HOST}:{first + 1}")
        self.proxy.environment = dict(DEPLOYED)
        if shell is not None:
            self.proxy.command = ["bash", "-c", shell, COMMAND]
        self._merge({"defaults": DEFAULTS})
        self._merge({"upstream": {"brokers": {node: f"{HOST}:{port}" for node, (_, port) in nodes.items()}}})
        if files is not None:
            self._merge({"listen": {"tls": files}, "upstream": {"tls": {"ca_file": self.ca_file}}})
        self._merge(config or {})
        self.target_address = nodes[1]

    def _merge(self, config: dict[str, Any]) -> None:
        for section, keys in config.items():
            held = self.proxy.config.get(section)
            self.proxy.config[section] = held | keys if isinstance(held, dict) else keys

    def start(self, honest: bool = True) -> "Stage":
        """Start all processes and, if `honest`, wait for the honest client's first responses."""
        self.target.wait_ready()
        self.honest_broker.wait_ready()
        self.proxy.start()
        if not honest:
            return self
        self.honest = SideProcess("tests.bounds.honest_client", host=HOST, port=self.port(2), ca_file=self.ca_file)
        self.honest.wait_ready()
        return self

    def stop(self) -> None:
        if self.honest is not None:
            self.honest.stop()
        self.proxy.stop()
        self.target.stop()
        self.honest_broker.stop()

    @property
    def pid(self) -> int:
        assert self.proxy.process is not None
        return self.proxy.process.pid

    @property
    def is_alive(self) -> bool:
        return self.proxy.process is not None and self.proxy.process.poll() is None

    def port(self, node: int) -> int:
        return self.proxy.broker_port(node)

    def longest_wait(self) -> float:
        """Return the honest client's longest wait since its start (s). Raises AssertionError if it got no response."""
        found = self.honest_waits()
        assert not found["failures"], found["failures"]
        return max(found["waits"].values())

    def honest_waits(self) -> dict[str, Any]:
        """Return `waits` of the honest client by probe (s), and `failures`, since its start.

        Two more responses to each probe come first, so that pending requests count; a missing one is a failure.
        """
        assert self.honest is not None
        counted = self.honest.ask("waits")["counts"]
        end = time.monotonic() + _RESPONSES_SECONDS
        while True:
            found = self.honest.ask("waits")
            missing = [name for name in counted if found["counts"][name] < counted[name] + 2]
            if not missing:
                return found
            if time.monotonic() > end:
                late = [f"{name}: no response within {_RESPONSES_SECONDS} s" for name in missing]
                return found | {"failures": found["failures"] + late}
            time.sleep(0.01)

    def log_bytes(self) -> int:
        return (self.folder / "proxy.log").stat().st_size

    def faults_in_files(self, log_from: int) -> list[str]:
        """Return tracebacks and incomplete JSON lines in the log and the events."""
        wrong = []
        with (self.folder / "proxy.log").open("rb") as log:
            log.seek(log_from)
            text = log.read()
        if b"Traceback" in text:
            at = text.index(b"Traceback")
            wrong.append(f"a traceback: ...{text[at:][-200:].decode(errors='replace')}")
        wrong += [f"a log line that is not JSON: {line[:80]!r}" for line in text.splitlines() if not _is_json(line)][:3]
        events = Path(self.proxy.config["violations"]["file"])
        if events.exists():
            lines = events.read_bytes().splitlines(keepends=True)
            wrong += [
                f"an event that is not a complete JSON line: {line[:80]!r}" for line in lines if not _is_event(line)
            ][:3]
        return wrong

    def open_connections(self) -> float:
        return self.proxy.metric("sluicegate_open_connections") or self.proxy.metric("sluicegate_connections")

    def wait_until_quiet(self, seconds: float) -> float:
        """Wait until no client connection is open. Return how many are still open after `seconds`."""
        end = time.monotonic() + seconds
        while (left := self.open_connections()) > 0 and time.monotonic() < end:
            time.sleep(0.05)
        return left

    def wait_until_live(self, seconds: float = 5) -> None:
        eventually(lambda: self.proxy.get("/livez") == (200, "ok\n"), seconds, "livez")
        eventually(lambda: self.proxy.get("/readyz")[0] == 200, seconds, "readyz")


StageMaker = Callable[..., Stage]


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _is_event(line: bytes) -> bool:
    return line.endswith(b"\n") and _is_json(line)
