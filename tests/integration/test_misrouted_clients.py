"""Clients that name the intended cluster and node (KIP-1242) get the response of the broker behind the proxy.

Each test runs with a port for each broker, and with a host name for each broker on one port (SNI). The expected codes
are those of the broker itself.
"""

import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sluicegate.protocol.messages.handshake import API_VERSIONS_RESPONSE
from tests.broker.certificates import Authority
from tests.broker.eventually import eventually
from tests.broker.fixtures import run_kafka
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.faults.test_verifiable import Tool
from tests.integration.java import java_tool
from tests.integration.topics import DEFAULTS, UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEWEST
from tests.wire.raw_client import API_VERSIONS, RawClient
from tests.wire.unparsed_messages import API_VERSIONS_REQUEST

pytestmark = pytest.mark.long

VERSION = 5
OTHER_CLUSTER = "uIeYmWMqQfy9zGsjzyYZ2w"
NO_NODE = -1
NONE, INVALID_REQUEST, REBOOTSTRAP_REQUIRED = 0, 42, 129
NODES = (1, 2)
FETCH = 1


@dataclass(frozen=True)
class Way:
    """A proxy and how clients reach the brokers behind it: by ports, or by names of its `authority`."""

    proxy: ProxyProcess
    authority: Authority | None

    def client(self, node_id: int | None) -> RawClient:
        """Connect to a broker's port or name; None: to bootstrap."""
        if self.authority is None:
            port = None if node_id is None else self.proxy.broker_port(node_id)
            return RawClient(self.proxy.bootstrap if port is None else f"127.0.0.1:{port}")
        client = RawClient(self.proxy.bootstrap)
        name = "bootstrap.test" if node_id is None else f"broker-{node_id}.brokers.test"
        context = ssl.create_default_context(cafile=self.authority.file)
        client.socket = context.wrap_socket(client.socket, server_hostname=name)
        return client

    def code(self, node_id: int | None, wanted_cluster: str | None, wanted_node: int) -> int:
        with self.client(node_id) as client:
            return code_for(client, wanted_cluster, wanted_node)

    def cluster_id(self) -> str:
        """Return the cluster id in a Metadata response, with which the client learns the addresses of the brokers."""
        with self.client(None) as client:
            found: str = client.metadata()["cluster_id"]
        return found


@pytest.fixture(scope="module")
def newest_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    yield from run_kafka(Kafka(KAFKA_NEWEST, tmp_path_factory.mktemp("newest"), size=2))


@pytest.fixture(scope="module")
def ports(newest_cluster: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    yield from way_through(ProxyProcess(tmp_path_factory.mktemp("ports"), newest_cluster.bootstrap), None)


@pytest.fixture(scope="module")
def names(newest_cluster: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    folder = tmp_path_factory.mktemp("names")
    proxy, authority = ProxyProcess(folder, newest_cluster.bootstrap), Authority(folder)
    own = authority.sign("sluicegate", "*.brokers.test", "bootstrap.test")
    listen = proxy.config["listen"]
    del listen["broker_port_base"]
    listen |= {"tls": own.files, "broker_host": "broker-{node_id}.brokers.test", "advertised_host": "bootstrap.test"}
    yield from way_through(proxy, authority)


def way_through(proxy: ProxyProcess, authority: Authority | None) -> Iterator[Way]:
    proxy.config["defaults"] = DEFAULTS
    try:
        yield Way(proxy.start(), authority)
    finally:
        proxy.stop()


@pytest.fixture(params=["ports", "names"])
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.getfixturevalue(request.param)
    return found


def code_for(client: RawClient, wanted_cluster: str | None, wanted_node: int) -> int:
    """Return the error code for a client that wants this node of this cluster."""
    wanted = {"cluster_id": wanted_cluster, "node_id": wanted_node}
    body = API_VERSIONS_REQUEST.build({"client_software_name": "raw", "client_software_version": "1"} | wanted, VERSION)
    response = client.call(API_VERSIONS, VERSION, API_VERSIONS_RESPONSE, body)
    assert not isinstance(response, str), response
    code: int = response["error_code"]
    return code


def code_at(address: str, wanted_cluster: str | None, wanted_node: int) -> int:
    with RawClient(address) as client:
        return code_for(client, wanted_cluster, wanted_node)


@pytest.mark.parametrize("node_id", NODES)
def test_a_brokers_port_or_name_responds_as_the_broker(node_id: int, newest_cluster: Kafka, way: Way) -> None:
    own = way.cluster_id()
    address = newest_cluster.nodes[node_id - 1].address
    wanted = [(cluster, node) for cluster in (None, own, OTHER_CLUSTER) for node in (NO_NODE, *NODES)]

    direct = {each: code_at(address, *each) for each in wanted}

    assert {each: way.code(node_id, *each) for each in wanted} == direct
    assert direct[None, NO_NODE] == NONE
    assert direct[own, NO_NODE] == INVALID_REQUEST  # a client must name both or neither
    assert {node: direct[own, node] for node in NODES} == {
        node: NONE if node == node_id else REBOOTSTRAP_REQUIRED for node in NODES
    }
    assert {direct[OTHER_CLUSTER, node] for node in NODES} == {REBOOTSTRAP_REQUIRED}


def test_bootstrap_accepts_a_client_that_knows_no_node(way: Way) -> None:
    assert [way.code(None, None, NO_NODE) for _ in range(4)] == [NONE] * 4  # bootstrap alternates between brokers


def test_clients_see_every_version_of_the_broker_except_of_fetch(newest_cluster: Kafka, ports: Way) -> None:
    listed = []
    for client in (RawClient(newest_cluster.nodes[0].address), ports.client(1)):
        with client:
            response = client.api_versions(VERSION)
        assert not isinstance(response, str), response
        listed.append({each["api_key"]: (each["min_version"], each["max_version"]) for each in response["api_keys"]})

    direct, through = listed
    assert {key for key, range_ in direct.items() if through.get(key) != range_} == {FETCH}


def test_java_works_in_a_group_without_a_rebootstrap(newest_cluster: Kafka, ports: Way) -> None:
    """Java connects to the coordinator, too, which it names by another number than the node id."""
    topic = create_topic(newest_cluster.bootstrap, UNVALIDATED, partitions=2, replicas=1)
    servers = ("--bootstrap-server", ports.proxy.bootstrap, "--topic", topic)
    before = rebootstraps_through(ports.proxy)

    java_tool("org.apache.kafka.tools.ConsoleProducer", *servers, stdin="one\ntwo\n", version=KAFKA_NEWEST)
    read = java_tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *(*servers, "--from-beginning", "--max-messages", "2", "--group", f"{topic}-group"),
        version=KAFKA_NEWEST,
    )

    assert sorted(read.split()) == ["one", "two"]
    assert rebootstraps_through(ports.proxy) == before


def test_a_broker_that_moved_to_another_address_is_found_again(newest_cluster: Kafka, way: Way) -> None:
    """Brokers 1 and 2 swap addresses. A client with old Metadata gets the code that it gets without the proxy."""
    own = way.cluster_id()
    first, second = newest_cluster.nodes
    assert way.code(1, own, 1) == NONE

    newest_cluster.swap_addresses(first, second)

    assert code_at(second.address, own, 1) == REBOOTSTRAP_REQUIRED
    assert way.code(1, own, 1) == REBOOTSTRAP_REQUIRED

    def is_found() -> bool:
        return way.cluster_id() == own and [way.code(node, own, node) for node in NODES] == [NONE, NONE]

    eventually(is_found, 60, "both nodes at their new addresses")


def test_clients_of_a_replaced_cluster_must_bootstrap_again(newest_cluster: Kafka, way: Way) -> None:
    old = way.cluster_id()
    assert [way.code(node, old, node) for node in NODES] == [NONE, NONE]

    newest_cluster.replace()

    assert [way.code(node, old, node) for node in NODES] == [REBOOTSTRAP_REQUIRED] * 2
    assert way.code(None, None, NO_NODE) == NONE
    eventually(lambda: way.cluster_id() != old, 60, "the other cluster")
    new = way.cluster_id()
    eventually(lambda: [way.code(node, new, node) for node in NODES] == [NONE, NONE], 60, "both nodes")


def test_java_continues_at_a_replaced_cluster(newest_cluster: Kafka, ports: Way, tmp_path: Path) -> None:
    """Java has already bootstrapped again when the second cluster starts, because no broker responded."""
    topic = create_topic(newest_cluster.bootstrap, UNVALIDATED, partitions=2, replicas=1)
    arguments = ("--topic", topic, "--bootstrap-server", ports.proxy.bootstrap, "--throughput", "20")
    producer = Tool("Producer", tmp_path, *arguments, version=KAFKA_NEWEST)
    try:
        eventually(lambda: len(producer.events("producer_send_success")) > 20, 60, "records of the first cluster")
        newest_cluster.replace()
        create_topic_again(newest_cluster, topic)
        stored = len(producer.events("producer_send_success"))
        eventually(lambda: len(producer.events("producer_send_success")) > stored + 20, 120, "records of the second")
    finally:
        producer.stop()


def create_topic_again(cluster: Kafka, topic: str) -> None:
    """Create a topic if the producer's Metadata request has not."""
    tool = "org.apache.kafka.tools.TopicCommand"
    java_tool(tool, "--bootstrap-server", cluster.bootstrap, "--create", "--topic", topic, "--if-not-exists")


def rebootstraps_through(proxy: ProxyProcess) -> int:
    """Return how many clients of the proxy a broker has told to bootstrap again."""
    lines = re.findall(
        r'^sluicegate_broker_errors_total\{api="ApiVersions",client_id=".*",error="REBOOTSTRAP_REQUIRED"\} (\S+)$',
        proxy.get("/metrics")[1],
        re.MULTILINE,
    )
    return round(sum(map(float, lines)))
