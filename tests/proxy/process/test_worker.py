"""What a worker has loaded while it serves."""

import pickle
import subprocess
import sys
from pathlib import Path

from sluicegate.config.loading import load
from sluicegate.config.source import Source
from tests.broker.ports import free_ports

NEEDED_BY_NO_WORKER = {"typer", "click", "yaml", "rich", "prometheus_client", "h11", "cryptography", "scramp"}
# As multiprocessing does it: what is preloaded, then the configuration, then the server.
PROGRAM = """
import asyncio, pickle, sys
import sluicegate.proxy.process.preloaded
from sluicegate.proxy.reporting.log_setup import logging_behind_a_queue
from sluicegate.proxy.process.server import Server
config = pickle.load(sys.stdin.buffer)
before = set(sys.modules)
async def serve():
    server = Server(config)
    await server.start()
    print(*{name.partition(".")[0] for name in sys.modules})
    print(*(name for name in set(sys.modules) - before if name.startswith("sluicegate.")))
    await server.drain()
with logging_behind_a_queue(config.log):
    asyncio.run(serve())
"""


def test_a_serving_worker_has_not_loaded_what_only_the_command_and_its_supervisor_need(tmp_path: Path) -> None:
    first = free_ports(4)
    given = {
        "SLUICEGATE__UPSTREAM__BOOTSTRAP": f"127.0.0.1:{first + 3}",
        "SLUICEGATE__LISTEN__BOOTSTRAP": f"127.0.0.1:{first}",
        "SLUICEGATE__ADMIN__LISTEN": f"127.0.0.1:{first + 1}",
        "SLUICEGATE__WORKERS": "2",
    }
    config = load(Source("nothing"), given).config
    worker = config.of_one_worker(config.listen.bootstrap)

    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=pickle.dumps(worker), capture_output=True, cwd=tmp_path, check=False
    )

    assert done.returncode == 0, done.stderr.decode()
    loaded, late = (set(line.split()) for line in done.stdout.decode().split("\n")[:2])
    assert "sluicegate" in loaded
    assert loaded & NEEDED_BY_NO_WORKER == set()
    assert late == set()  # what is loaded before workers are forked lies in memory once
