"""Runs a standalone Spark cluster on this machine: a master and two workers with one core each."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.pipeline.commands import ENVIRONMENT
from tests.pipeline.spark_home import HOME

WORKERS = 2


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Start the cluster and yield its address. All its processes are descendants of this process."""
    port = free_ports(2)
    address = f"spark://127.0.0.1:{port}"
    master = ["Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(port + 1)]
    worker = ["Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
    with ExitStack() as running:
        log = folder / "master.log"
        running.enter_context(_running("master", log, master))
        eventually(lambda: "New state: ALIVE" in log.read_text(), 60, "a master")
        for number in range(WORKERS):
            place = ["--work-dir", str(folder / f"worker-{number}"), address]
            running.enter_context(_running("worker", folder / f"worker-{number}.log", [*worker, *place]))
        eventually(lambda: log.read_text().count("Registering worker") == WORKERS, 60, "workers")
        yield address


@contextmanager
def _running(room: str, log: Path, arguments: list[str]) -> Iterator[None]:
    environment = ENVIRONMENT | {"SPARK_LOCAL_IP": "127.0.0.1"}
    command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{room}.{arguments[0]}", *arguments[1:]]
    with log.open("wb") as reported:
        process = subprocess.Popen(killed_with_parent(command), stdout=reported, stderr=reported, env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)
