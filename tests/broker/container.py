"""Runs a Kafka broker in a container with Apache's image, if a Docker engine is running."""

import shutil
import subprocess
from collections.abc import Iterator

from testcontainers.core.container import DockerContainer
from testcontainers.core.waiting_utils import wait_for_logs

from tests.broker.ports import free_ports
from tests.oracle.kafka_java import KAFKA_NEW

IMAGE = f"apache/kafka:{KAFKA_NEW}"
_START_SECONDS = 120


def docker_is_running() -> bool:
    """Return whether a Docker engine responds; the client alone is not enough."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    return subprocess.run([docker, "info"], capture_output=True, check=False).returncode == 0


def running_container() -> Iterator[str]:
    """Start a broker in a container, yield its address, and stop it afterwards."""
    port = free_ports(1)
    settings = {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_LISTENERS": f"PLAINTEXT://:{port},CONTROLLER://:9093",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://127.0.0.1:{port}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    }
    container = DockerContainer(IMAGE).with_bind_ports(port, port)
    for name, value in settings.items():
        container = container.with_env(name, value)
    with container:
        wait_for_logs(container, "Kafka Server started", timeout=_START_SECONDS)
        yield f"127.0.0.1:{port}"
