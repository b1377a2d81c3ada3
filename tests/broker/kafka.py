"""Runs real Kafka brokers from Maven's jars, one or a cluster. Tests can kill, stop and restart them."""

import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.broker.child_processes import killed_with_parent
from tests.broker.ports import free_ports
from tests.broker.storage import format_storage, random_uuid
from tests.oracle.java_program import SHORT_LIVED, java_command
from tests.oracle.kafka_java import kafka_folder

_START_SECONDS = 240
FROZEN_CLOCK = str(Path(__file__).with_name("FrozenClockKafka.java"))
"""The program of a broker whose validator uses a frozen clock, at the time in the option -Dfrozen.at=MS."""

_SETTINGS = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.min.isr": "1",
    "num.partitions": "3",
    "controller.quorum.election.timeout.ms": "1000",
    "controlled.shutdown.max.retries": "1",
    "metadata.max.idle.interval.ms": "60000",  # the default, twice a second, causes half of an idle broker's cost
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


@dataclass
class Node:
    """One broker process."""

    node_id: int
    port: int
    controller_port: int
    relayed_port: int = 0
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@dataclass
class Kafka:
    """A cluster of `size` brokers of one version, in a folder of its own. `options` are Java's. `first_id`: the node id
    of the first broker.

    `relay_host`: each broker has one more listener (`relayed_port`), advertised at this host and the same port, so
    that a relay at that host sees the traffic.
    """

    version: str
    folder: Path
    size: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    program: str = "kafka.Kafka"
    options: tuple[str, ...] = ()
    relay_host: str | None = None
    first_id: int = 1
    nodes: list[Node] = field(default_factory=list)
    _controllers: tuple[Node, ...] = ()
    _cluster_id: str = ""

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.nodes)

    @property
    def relayed_bootstrap(self) -> str:
        return ",".join(f"{self.relay_host}:{node.relayed_port}" for node in self.nodes)

    def start(self) -> "Kafka":
        self.folder.mkdir(parents=True, exist_ok=True)
        first = free_ports(3 * self.size)
        ports = range(first, first + 3 * self.size, 3)
        self.nodes = [Node(self.first_id + i, port, port + 1, port + 2) for i, port in enumerate(ports)]
        self._controllers = tuple(self.nodes)
        self._start_empty()
        return self

    def replace(self) -> None:
        """Kill the cluster and start another at the same addresses: the same node ids, another cluster id, no data."""
        for node in self.nodes:
            self.kill(node)
            shutil.rmtree(self._data_of(node))
        self._start_empty()

    def swap_addresses(self, one: Node, other: Node) -> None:
        """Restart two brokers, each at the address of the other; controllers keep theirs."""
        for node in (one, other):
            self.kill(node)
        one.port, other.port = other.port, one.port
        for node in (one, other):
            self._config_of(node).write_text(self._properties(node))
            self.start_node(node)
        for node in (one, other):
            self.wait_until_up(node)

    def add_node(self, node_id: int | None = None) -> Node:
        """Start one more broker, with this id or the next; the controllers do not change."""
        port = free_ports(1)
        node = Node(len(self.nodes) + 1 if node_id is None else node_id, port, 0)
        self.nodes.append(node)
        self._prepare(node)
        self.start_node(node)
        self.wait_until_up(node)
        return node

    def start_node(self, node: Node) -> None:
        log = (self.folder / f"node-{node.node_id}.log").open("ab")
        node.process = subprocess.Popen(
            killed_with_parent(
                [
                    *java_command(kafka_folder(self.version), self.program, ("-Xmx512m", *SHORT_LIVED, *self.options)),
                    str(self._config_of(node)),
                ]
            ),
            stdout=log,
            stderr=log,
            cwd=self.folder,
        )
        log.close()

    def wait_until_up(self, node: Node) -> None:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            assert node.process is not None
            assert node.process.poll() is None, self._complaint(node, "ended by itself")
            try:
                socket.create_connection(("127.0.0.1", node.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)  # no event announces an open port
        raise AssertionError(self._complaint(node, f"did not start within {_START_SECONDS} s"))

    def kill(self, node: Node) -> None:
        """Kill the broker (SIGKILL), as in a power cut."""
        assert node.process is not None
        node.process.send_signal(signal.SIGKILL)
        node.process.wait()

    def stop(self) -> None:
        for node in self.nodes:
            if node.process is not None:
                node.process.kill()
                node.process.wait()

    def _start_empty(self) -> None:
        self._cluster_id = random_uuid()
        for node in self.nodes:
            self._prepare(node)
        for node in self.nodes:
            self.start_node(node)
        for node in self.nodes:
            self.wait_until_up(node)

    def _prepare(self, node: Node) -> None:
        self._config_of(node).write_text(self._properties(node))
        format_storage(self.version, self._config_of(node), self._data_of(node), self._cluster_id, node.node_id)

    def _data_of(self, node: Node) -> Path:
        return self.folder / f"data-{node.node_id}"

    def _config_of(self, node: Node) -> Path:
        return self.folder / f"node-{node.node_id}.properties"

    def _properties(self, node: Node) -> str:
        voters = ",".join(f"{n.node_id}@127.0.0.1:{n.controller_port}" for n in self._controllers)
        replicas = str(min(3, self.size))
        listeners = f"PLAINTEXT://127.0.0.1:{node.port}"
        if node in self._controllers:
            listeners += f",CONTROLLER://127.0.0.1:{node.controller_port}"
        settings = _SETTINGS | {
            "process.roles": "broker,controller" if node in self._controllers else "broker",
            "node.id": str(node.node_id),
            "controller.quorum.voters": voters,
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{node.port}",
            "log.dirs": str(self._data_of(node)),
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            **self._relayed(node),
            **self.settings,
        }
        return "".join(f"{key}={value}\n" for key, value in settings.items())

    def _relayed(self, node: Node) -> dict[str, str]:
        """Return the settings of one more listener, if `relay_host` is set."""
        if self.relay_host is None:
            return {}
        own, controller = f"PLAINTEXT://127.0.0.1:{node.port}", f"CONTROLLER://127.0.0.1:{node.controller_port}"
        return {
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,RELAYED:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "listeners": f"{own},RELAYED://127.0.0.1:{node.relayed_port},{controller}",
            "advertised.listeners": f"{own},RELAYED://{self.relay_host}:{node.relayed_port}",
        }

    def _complaint(self, node: Node, what: str) -> str:
        tail = (self.folder / f"node-{node.node_id}.log").read_text(errors="replace")[-3000:]
        return f"Kafka {self.version} node {node.node_id} {what}:\n{tail}"
