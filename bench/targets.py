"""Starts the measured targets: a broker and the proxies in front of it, all on the loopback address."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.machine import Usage, usage_of, with_children
from tests.broker.child_processes import killed_with_parent
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess

ROOT = Path(__file__).parent.parent
KAFKA_CLASS_PATH = f"{ROOT / '.kafka' / '4.3.1'}/*"
KROXYLICIOUS_JARS = ROOT / ".bench" / "kroxylicious"
_NODE_ID = 1
_START_SECONDS = 180  # next to other tests, a broker takes a minute to start
BOUNDS = {"message.timestamp.before.max.ms": 86_400_000, "message.timestamp.after.max.ms": 3_600_000}


@dataclass(frozen=True)
class Target:
    """A target.

    `bootstrap` is for clients, `leader` is the broker's own address, and `pid` is the measured process (None without a
    proxy).
    """

    name: str
    bootstrap: str
    leader: str
    pid: int | None

    def usage(self) -> Usage:
        """Return the usage of the proxy and its workers."""
        return Usage(0.0, 0) if self.pid is None else usage_of(with_children(self.pid))


@contextmanager
def broker(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Run a broker. Yield its address, its port for a relay, and the port that it advertises for that relay."""
    port = free_ports(4)
    controller, behind_relay, relay = port + 1, port + 2, port + 3
    listeners = f"PLAINTEXT://127.0.0.1:{port},RELAYED://127.0.0.1:{behind_relay}"
    properties = {
        "process.roles": "broker,controller",
        "node.id": _NODE_ID,
        "controller.quorum.voters": f"{_NODE_ID}@127.0.0.1:{controller}",
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},RELAYED://127.0.0.1:{relay}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,RELAYED:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": folder / "data",
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
    }
    file = folder / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    java = ["java", "-Xmx1g", "-cp", KAFKA_CLASS_PATH]
    storage = [*java, "kafka.tools.StorageTool"]
    made = subprocess.run([*storage, "random-uuid"], capture_output=True, text=True, check=True)
    cluster_id = made.stdout.strip().splitlines()[-1]
    subprocess.run([*storage, "format", "-t", cluster_id, "-c", str(file)], capture_output=True, check=True)
    with running([*java, "kafka.Kafka", str(file)], folder / "broker.log", port):
        yield f"127.0.0.1:{port}", behind_relay, relay


@contextmanager
def relay(folder: Path, listen: int, upstream: int) -> Iterator[Target]:
    """Run the bare relay."""
    command = [sys.executable, "-u", "-m", "bench.relay", str(listen), str(upstream)]
    with running(command, folder / "relay.log", listen) as pid:
        yield Target("bare relay", f"127.0.0.1:{listen}", f"127.0.0.1:{listen}", pid)


@contextmanager
def sluicegate(folder: Path, name: str, upstream: str, settings: dict[str, Any]) -> Iterator[Target]:
    """Run our proxy with its defaults. In contrast, tests run it in debug mode and let it poll the cluster often."""
    own = folder / name.replace(" ", "-")
    own.mkdir()
    proxy = ProxyProcess(own, upstream, {"violations": {}, "log": {"level": "error"}, **settings})
    proxy.environment = {}
    del proxy.config["upstream"]["refresh_seconds"]
    proxy.start()
    try:
        assert proxy.process is not None
        yield Target(name, proxy.bootstrap, f"127.0.0.1:{proxy.broker_port(_NODE_ID)}", proxy.process.pid)
    finally:
        proxy.stop()


_KROXYLICIOUS_RULES = {
    "kroxylicious": {},
    "kroxylicious validating": {
        "filterDefinitions": [
            {
                "name": "validate",
                "type": "RecordValidation",
                # The cheapest rule that reads every record.
                "config": {"rules": [], "defaultRule": {"valueRule": {"allowNulls": False, "allowEmpty": False}}},
            }
        ],
        "defaultFilters": ["validate"],
    },
    "kroxylicious json": {
        "filterDefinitions": [
            {
                "name": "validate",
                "type": "RecordValidation",
                "config": {
                    "rules": [],
                    "defaultRule": {"valueRule": {"syntacticallyCorrectJson": {"validateObjectKeysUnique": False}}},
                },
            }
        ],
        "defaultFilters": ["validate"],
    },
}


@contextmanager
def kroxylicious(folder: Path, name: str, upstream: str) -> Iterator[Target]:
    """Run Kroxylicious. `name` is a key of _KROXYLICIOUS_RULES."""
    port = free_ports(2)
    classes = folder / "classes"
    if not classes.exists():
        _compile_launcher(classes)
    file = folder / f"{name.replace(' ', '-')}.yaml"
    cluster = {
        "name": "bench",
        "targetCluster": {"bootstrapServers": upstream},
        "clusterNetworkAddressConfigProvider": {
            "type": "LoopbackListeners",
            "config": {"port": port, "node": _NODE_ID},
        },
        "logNetwork": False,
        "logFrames": False,
    }
    file.write_text(yaml.safe_dump({"virtualClusters": [cluster], **_KROXYLICIOUS_RULES[name]}, sort_keys=False))
    java = ["java", "-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
    command = [*java, "-cp", f"{classes}:{KROXYLICIOUS_JARS}/*", "StartKroxylicious", str(file)]
    with running(command, file.with_suffix(".log"), port) as pid:
        yield Target(name, f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}", pid)


def _compile_launcher(classes: Path) -> None:
    services = classes / "META-INF" / "services"
    services.mkdir(parents=True)
    sources = [str(source) for source in sorted((ROOT / "bench" / "kroxylicious").glob("*.java"))]
    subprocess.run(
        ["javac", "-nowarn", "-proc:none", "-cp", f"{KROXYLICIOUS_JARS}/*", "-d", str(classes), *sources], check=True
    )
    service = "io.kroxylicious.proxy.service.ClusterNetworkAddressConfigProviderService"
    (services / service).write_text("LoopbackListeners\n")


@contextmanager
def running(command: list[str], log: Path, port: int, environment: dict[str, str] | None = None) -> Iterator[int]:
    """Run a process until the end of the block, and wait until it listens on `port`.

    `environment` is added to this process's environment. Raises RuntimeError if the process does not listen.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            killed_with_parent(command), stdout=output, stderr=output, cwd=ROOT, env=os.environ | (environment or {})
        )
    try:
        end = time.monotonic() + _START_SECONDS
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{command} did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)  # no event announces an open port
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
