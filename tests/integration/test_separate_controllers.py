"""With KRaft controllers in separate processes, the status is right when they are gone, and when they fence all
brokers.
"""

import selectors
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.kafka import _SETTINGS, _START_SECONDS
from tests.broker.ports import free_ports
from tests.broker.proxy_process import ProxyProcess
from tests.broker.storage import format_storage, random_uuid
from tests.integration.condition_views import active_condition_details
from tests.integration.test_reload import produce_codes_on_connections
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.java_program import SHORT_LIVED, java_command
from tests.oracle.kafka_java import KAFKA_NEW, kafka_folder
from tests.proxy.cli.test_commands import sluicegate
from tests.wire.raw_client import RawClient

pytestmark = pytest.mark.long

_BROKER_HEARTBEAT = 63
_SESSION_MS = 3000
_WITHIN_SECONDS = 5
_FOR_A_BUSY_MACHINE = 10
_CONTROLLERS = (101, 102, 103)
_BROKERS = (1, 2)


class ControllerRelay:
    """Forwards connections of brokers to one controller, and cuts those with heartbeats while `fences` is set."""

    def __init__(self, port: int) -> None:
        self.fences = False
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts connections
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                threading.Thread(target=self._forward, args=(connection,), daemon=True).start()

    def _forward(self, broker: socket.socket) -> None:
        with broker, suppress(OSError), socket.create_connection(("127.0.0.1", self._target), 5) as controller:
            self._exchange(broker, controller)

    def _exchange(self, broker: socket.socket, controller: socket.socket) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(broker, selectors.EVENT_READ, controller)
            ready.register(controller, selectors.EVENT_READ, broker)
            while True:
                for key, _ in ready.select():
                    data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]  # a socket
                    if not data or (self.fences and key.fileobj is broker and _is_heartbeat(data)):
                        return
                    key.data.sendall(data)


def _is_heartbeat(data: bytes) -> bool:
    return len(data) >= 6 and struct.unpack_from(">h", data, 4)[0] == _BROKER_HEARTBEAT


class ClusterWithSeparateControllers:
    """Three controllers and two brokers, each a process; brokers reach the controllers through relays."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack, self._cluster_id = folder, stack, random_uuid()
        folder.mkdir()
        first = free_ports(len(_CONTROLLERS) + len(_BROKERS))
        self._ports = {node: first + i for i, node in enumerate((*_CONTROLLERS, *_BROKERS))}
        self.relays = [ControllerRelay(self._ports[node]) for node in _CONTROLLERS]
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        for relay in self.relays:
            stack.callback(relay.close)
        direct = self._voters([self._ports[node] for node in _CONTROLLERS])
        relayed = self._voters([relay.port for relay in self.relays])
        for node in _CONTROLLERS:
            self._start(node, "controller", direct, f"CONTROLLER://127.0.0.1:{self._ports[node]}")
        for node in _BROKERS:
            self._start(node, "broker", relayed, f"PLAINTEXT://{self.address(node)}")
        eventually(lambda: self.listed_brokers() == set(_BROKERS), _START_SECONDS, "both brokers are listed")

    def _voters(self, ports: list[int]) -> str:
        return ",".join(f"{node}@127.0.0.1:{port}" for node, port in zip(_CONTROLLERS, ports, strict=True))

    def _start(self, node: int, role: str, voters: str, listener: str) -> None:
        settings = _SETTINGS | {
            "process.roles": role,
            "node.id": str(node),
            "controller.quorum.voters": voters,
            "listeners": listener,
            "log.dirs": str(self._folder / f"data-{node}"),
            "offsets.topic.replication.factor": "1",
            "broker.session.timeout.ms": str(_SESSION_MS),
            "broker.heartbeat.interval.ms": "500",
        }
        file = self._folder / f"{node}.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        format_storage(KAFKA_NEW, file, self._folder / f"data-{node}", self._cluster_id, node)
        command = [*java_command(kafka_folder(KAFKA_NEW), "kafka.Kafka", ("-Xmx384m", *SHORT_LIVED)), str(file)]
        with (self._folder / f"{node}.log").open("ab") as log:
            process = subprocess.Popen(killed_with_parent(command), stdout=log, stderr=log, cwd=self._folder)
        self.processes[node] = process
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)

    def address(self, node: int) -> str:
        return f"127.0.0.1:{self._ports[node]}"

    @property
    def bootstrap(self) -> str:
        return ",".join(map(self.address, _BROKERS))

    def listed_brokers(self) -> set[int]:
        """Return the brokers that the first broker lists in Metadata."""
        try:
            with RawClient(self.address(_BROKERS[0])) as client:
                return {broker["node_id"] for broker in client.metadata()["brokers"]}
        except OSError:
            return set()

    def kill_controllers(self, count: int) -> None:
        for node in _CONTROLLERS[:count]:
            self.processes[node].kill()
            self.processes[node].wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterWithSeparateControllers]:
    """Yield one cluster, which each test leaves with fewer controllers than the previous test."""
    with ExitStack() as stack:
        yield ClusterWithSeparateControllers(tmp_path_factory.mktemp("separate") / "cluster", stack)


Start = Callable[[], ProxyProcess]


@pytest.fixture
def start(cluster: ClusterWithSeparateControllers, tmp_path: Path) -> Iterator[Start]:
    proxy = ProxyProcess(tmp_path, cluster.bootstrap)
    try:
        yield proxy.start
    finally:
        proxy.stop()


def test_no_broker_is_listed_when_the_controllers_fence_all_of_them(
    cluster: ClusterWithSeparateControllers, start: Start
) -> None:
    proxy = start()
    for relay in cluster.relays:
        relay.fences = True
    eventually(lambda: cluster.listed_brokers() == set(), 60, "Metadata without a broker")

    seconds = _WITHIN_SECONDS + _FOR_A_BUSY_MACHINE
    detail = eventually(lambda: active_condition_details(proxy).get("no_broker_listed"), seconds, "no_broker_listed")
    assert "responds, but lists no broker" in detail
    assert proxy.get("/readyz")[0] == 503
    assert proxy.metric("sluicegate_ready") == 0
    examined = sluicegate("doctor", "--config", str(proxy.folder / "sluicegate.yaml"))
    assert (examined.returncode, "lists no broker" in examined.stdout) == (1, True), examined.stdout

    for relay in cluster.relays:
        relay.fences = False
    eventually(lambda: proxy.get("/readyz") == (200, "serving\n"), 60, "serving")


@pytest.mark.parametrize("count", [1, len(_CONTROLLERS)], ids=["one controller", "all controllers"])
def test_brokers_that_outlive_controllers_serve_their_clients(
    cluster: ClusterWithSeparateControllers, start: Start, count: int
) -> None:
    """Without a controller no broker is fenced, so the brokers list each other and store records."""
    topic = create_topic(cluster.bootstrap, UNVALIDATED, partitions=1)
    proxy = start()
    cluster.kill_controllers(count)

    with RawClient(cluster.address(1)) as client:
        assert {broker["node_id"] for broker in client.metadata()["brokers"]} == set(_BROKERS)
    assert proxy.get("/readyz")[0] == 200
    assert produce_codes_on_connections(proxy, topic, 1) <= {0, 6}  # 6: the other broker leads the partition
