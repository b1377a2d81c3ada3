"""What a broker's folder needs before its first start. Kafka's storage tool is asked once for each release; what it
writes is the same for every broker but for the ids, and it takes nearly as long to start as a broker.
"""

import base64
import subprocess
import uuid
from pathlib import Path

from tests.oracle.java_program import java_command
from tests.oracle.kafka_java import kafka_folder

_CHECKPOINT, _IDS = "bootstrap.checkpoint", "meta.properties"
_checkpoints: dict[str, bytes] = {}


def an_id() -> str:
    """As Kafka's own Uuid writes one: 16 bytes in base64; the first is never a dash, which a tool would take ill."""
    made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return f"A{made[1:]}" if made.startswith("-") else made


def format_storage(version: str, config: Path, data: Path, cluster_id: str, node_id: int) -> None:
    """`data` is the folder that the broker's properties in `config` name as log.dirs."""
    if version not in _checkpoints:
        tool = java_command(kafka_folder(version), "kafka.tools.StorageTool")
        command = [*tool, "format", "-t", cluster_id, "-c", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=config.parent)
        assert done.returncode == 0, done.stderr
        _checkpoints[version] = (data / _CHECKPOINT).read_bytes()
        return
    data.mkdir(exist_ok=True)  # it may be a disk of its own
    (data / _CHECKPOINT).write_bytes(_checkpoints[version])
    ids = {"version": 1, "cluster.id": cluster_id, "node.id": node_id, "directory.id": an_id()}
    (data / _IDS).write_text("".join(f"{name}={value}\n" for name, value in ids.items()))
