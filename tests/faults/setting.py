"""Runs three brokers, a proxy and two faulty relays. Clients connect to the proxy through one relay. The proxy connects
to the brokers through the other relay, whose address the brokers advertise.
"""

import os
import signal
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition as ReplicatedPartition

from sluicegate.protocol.messages.cluster import DESCRIBE_QUORUM_REQUEST, DESCRIBE_QUORUM_RESPONSE, METADATA_TOPIC
from tests.broker.certificates import Authority
from tests.broker.disk import Disk
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka, Node
from tests.broker.proxy_process import ProxyProcess
from tests.faults.left import CLOCK_FILE, INSIDE, process_ids
from tests.faults.load import PARTITIONS, TIMEOUT_SECONDS
from tests.faults.relay import FaultyRelay
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.raw_client import RawClient
from tests.wire.tls_client import TlsClient

SEEN_BY_CLIENTS, SEEN_BY_PROXY = "127.0.0.2", "127.0.0.3"
BROKERS = 3
_DESCRIBE_QUORUM = 55
_SETTINGS = {
    # The cluster notices a dead broker within seconds.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "transaction.state.log.min.isr": "2",
    "auto.create.topics.enable": "false",
    "initial.broker.registration.timeout.ms": "240000",  # for a busy machine
}


# A clock jump of an hour changes no verdict on current records.
_BOUNDS = {"message.timestamp.before.max.ms": 7_200_000, "message.timestamp.after.max.ms": 7_200_000}
_ROOM = 4 << 30
_LITTLE_ROOM = 256 << 10


@dataclass(frozen=True, slots=True)
class RelayedCluster:
    """A cluster for many runs that advertises the address of each run's relay. The last broker has its own disk."""

    kafka: Kafka
    disk: Disk

    @contextmanager
    def running(self) -> Iterator["RelayedCluster"]:
        try:
            self.disk.mount(_ROOM)
            self.kafka.start()
            yield self
        finally:
            self.kafka.stop()
            self.disk.unmount()


def cluster_in(folder: Path) -> RelayedCluster:
    kafka = Kafka(KAFKA_NEW, folder, BROKERS, _SETTINGS, relay_host=SEEN_BY_PROXY)
    return RelayedCluster(kafka, Disk(folder / f"data-{BROKERS}"))


class FaultSetting:
    """The proxy and the relays of one run."""

    def __init__(
        self, cluster: RelayedCluster, folder: Path, workers: int, seed: int, authority: Authority | None = None
    ) -> None:
        """`authority`: signs the proxy's certificate; clients then connect over TLS."""
        self.disk = cluster.disk
        self.cluster = cluster.kafka
        self.proxy = ProxyProcess(folder, self.cluster.relayed_bootstrap, {"workers": workers, "defaults": _BOUNDS})
        self.proxy.start_seconds = TIMEOUT_SECONDS
        self.proxy.config["listen"]["advertised_host"] = SEEN_BY_CLIENTS
        self.proxy.environment = {"PYTHONPATH": str(INSIDE), "FAULTS_FOLDER": str(folder)}
        self._workers = workers
        first = int(self.proxy.bootstrap.rpartition(":")[2])
        ports = [first, *(self.proxy.broker_port(node.node_id) for node in self.cluster.nodes)]
        self.client_relay = FaultyRelay(SEEN_BY_CLIENTS, ports, seed)
        self.broker_relay = FaultyRelay(SEEN_BY_PROXY, [node.relayed_port for node in self.cluster.nodes], seed + 1)
        self.reached_by: dict[str, Any] = {"bootstrap.servers": f"{SEEN_BY_CLIENTS}:{first}"}
        self._authority = authority
        if authority is not None:
            self.proxy.config["listen"]["tls"] = authority.sign("proxy", SEEN_BY_CLIENTS, "127.0.0.1").files
            self.reached_by |= {"security.protocol": "SSL", "ssl.ca.location": str(authority.file)}
        self.topics: list[str] = []

    @contextmanager
    def running(self) -> Iterator["FaultSetting"]:
        """Start the proxy and the relays, and stop them at the end."""
        with self.client_relay, self.broker_relay:
            try:
                self.proxy.start()
                yield self
            finally:
                self.proxy.stop()

    @property
    def relay_hits(self) -> int:
        """Return how often the relays' faults hit."""
        return self.client_relay.hits + self.broker_relay.hits

    def client(self, port: int) -> RawClient:
        """Return a client of the proxy at a port of the relay."""
        return self.client_at(f"{SEEN_BY_CLIENTS}:{port}")

    def client_at(self, address: str) -> RawClient:
        """Return a client of the proxy at an address, of the relay or of the proxy."""
        if self._authority is None:
            return RawClient(address)
        return TlsClient(address, ssl.create_default_context(cafile=str(self._authority.file)))

    def topic(self) -> str:
        """Create a topic that survives the loss of a broker."""
        name = create_topic(
            self.cluster.bootstrap, UNVALIDATED | {"min.insync.replicas": "2"}, PARTITIONS, replicas=BROKERS
        )
        self.topics.append(name)
        return name

    # -- faults -------------------------------------------------------------------------------------------------

    def kill_and_start(self, node: Node) -> None:
        self.cluster.kill(node)
        self.cluster.start_node(node)
        self.cluster.wait_until_up(node)

    def active_controller(self) -> Node:
        """Return the active controller as reported by a broker."""
        partition = {"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}
        body = DESCRIBE_QUORUM_REQUEST.build({"topics": [partition]}, 1)
        leader: list[int] = []

        def is_known() -> bool:
            with RawClient(self.cluster.nodes[0].address) as client:
                response: Any = client.call(_DESCRIBE_QUORUM, 1, DESCRIBE_QUORUM_RESPONSE, body)
            (quorum,) = response["topics"][0]["partitions"]
            leader.append(quorum["leader_id"])
            return leader[-1] > 0

        eventually(is_known, what="an active controller")
        return self.cluster.nodes[leader[-1] - 1]

    def move_leaders(self) -> None:
        """Make the next replica of each partition preferred, and elect it."""
        bootstrap = self.cluster.bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap})
        cluster = admin.list_topics(timeout=TIMEOUT_SECONDS)
        moves = {
            ReplicatedPartition(topic, index): [*partition.replicas[1:], partition.replicas[0]]
            for topic in self.topics
            for index, partition in cluster.topics[topic].partitions.items()
        }
        mover = KafkaAdminClient(bootstrap_servers=bootstrap)
        try:
            mover.alter_partition_reassignments(moves)
            eventually(lambda: not mover.list_partition_reassignments(), what="the new order of replicas")
        finally:
            mover.close()
        partitions = [TopicPartition(topic, index) for topic, index in moves]
        admin.elect_leaders(ElectionType.PREFERRED, partitions).result(TIMEOUT_SECONDS)

    def fill_disk(self) -> None:
        """Fill the last broker's disk until Kafka ends, then free it and start the broker again."""
        node = self.cluster.nodes[-1]
        process = node.process
        assert process is not None
        self.disk.resize(self.disk.used() + _LITTLE_ROOM)
        eventually(lambda: process.poll() is not None, TIMEOUT_SECONDS, "the end of the broker with a full disk")
        self.disk.resize(_ROOM)
        self.cluster.start_node(node)
        self.cluster.wait_until_up(node)

    def set_clock(self, ahead_ms: int) -> None:
        """Set the clock of all the proxy's processes, including later ones."""
        Path(self.proxy.folder, CLOCK_FILE).write_text(str(ahead_ms))
        for pid in process_ids(self.proxy):
            os.kill(pid, signal.SIGUSR1)

    def kill_and_start_proxy(self) -> None:
        pids = self.worker_pids()
        self.proxy.kill()
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), what="the end of its workers")
        self.proxy.start()

    def worker_pids(self) -> list[int]:
        """Return the workers' process ids; none if the proxy is one process."""
        assert self.proxy.process is not None
        pid = self.proxy.process.pid
        return [worker for child in _children_of(pid) for worker in _children_of(child)]

    # -- afterwards ----------------------------------------------------------------------------------------------

    def wait_until_whole(self) -> None:
        """Wait until all brokers and workers run and the proxy is ready."""
        for node in self.cluster.nodes:
            eventually(partial(self._sees_all_brokers, node), TIMEOUT_SECONDS, f"all brokers for {node.address}")
        eventually(lambda: self.proxy.get("/readyz")[0] == 200, TIMEOUT_SECONDS, "a proxy that is ready")
        eventually(lambda: self.proxy.metric("sluicegate_workers") == self._workers, what="all workers")

    def _sees_all_brokers(self, node: Node) -> bool:
        with RawClient(node.address) as client:
            return len(client.metadata()["brokers"]) == BROKERS


def _children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
