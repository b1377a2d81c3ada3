"""Formats a broker's folder before its first start.

Kafka's storage tool starts almost as slowly as a broker. It runs once for each release; its files are reused with other
ids.
"""

import base64
import subprocess
import uuid
from pathlib import Path

from tests.oracle.java_program import java_command
from tests.oracle.kafka_java import kafka_folder

_CHECKPOINT, _IDS = "bootstrap.checkpoint", "meta.properties"
_checkpoints: dict[str, bytes] = {}


def random_uuid() -> str:
    """Return a random id as Kafka's Uuid: 16 bytes in base64, without a leading dash, which tools reject."""
    made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return f"A{made[1:]}" if made.startswith("-") else made


def format_storage(version: str, config: Path, data: Path, cluster_id: str, node_id: int) -> None:
    """Format `data`, the folder that the properties in `config` name as log.dirs."""
    if version not in _checkpoints:
        tool = java_command(kafka_folder(version), "kafka.tools.StorageTool")
        command = [*tool, "format", "-t", cluster_id, "-c", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=config.parent)
        assert done.returncode == 0, done.stderr
        _checkpoints[version] = (data / _CHECKPOINT).read_bytes()
        return
    data.mkdir(exist_ok=True)  # the folder may be a mounted disk
    (data / _CHECKPOINT).write_bytes(_checkpoints[version])
    ids = {"version": 1, "cluster.id": cluster_id, "node.id": node_id, "directory.id": random_uuid()}
    (data / _IDS).write_text("".join(f"{name}={value}\n" for name, value in ids.items()))
