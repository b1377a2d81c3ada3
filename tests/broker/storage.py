"""Formats a broker's folder before its first start.

Kafka's storage tool starts almost as slowly as a broker. It runs once for each release and role, and the files that it
wrote are reused with other ids. A controller receives the cluster's first records: as `bootstrap.checkpoint` up to
Kafka 4.3, and as a snapshot of the metadata log since 4.4. A broker that is not a controller needs none of these
records.
"""

import base64
import subprocess
import uuid
from pathlib import Path

from tests.oracle.java_program import java_command
from tests.oracle.kafka_java import kafka_folder

_IDS = "meta.properties"
_ROLES = "process.roles="
_first_records: dict[tuple[str, str], dict[Path, bytes]] = {}


def random_uuid() -> str:
    """Return a random id as Kafka's Uuid: 16 bytes in base64, without a leading dash, which tools reject."""
    made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return f"A{made[1:]}" if made.startswith("-") else made


def format_storage(version: str, config: Path, data: Path, cluster_id: str, node_id: int) -> None:
    """Format `data`, the folder that the properties in `config` name as log.dirs."""
    kind = version, _roles_in(config)
    if kind not in _first_records:
        tool = java_command(kafka_folder(version), "kafka.tools.StorageTool")
        command = [*tool, "format", "-t", cluster_id, "-c", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=config.parent)
        assert done.returncode == 0, done.stderr
        _first_records[kind] = _files_in(data)
        return
    for path, contents in _first_records[kind].items():
        (data / path).parent.mkdir(parents=True, exist_ok=True)
        (data / path).write_bytes(contents)
    data.mkdir(exist_ok=True)  # the folder may be a mounted disk
    ids = {"version": 1, "cluster.id": cluster_id, "node.id": node_id, "directory.id": random_uuid()}
    (data / _IDS).write_text("".join(f"{name}={value}\n" for name, value in ids.items()))


def _roles_in(config: Path) -> str:
    (roles,) = (line for line in config.read_text().splitlines() if line.startswith(_ROLES))
    return roles.removeprefix(_ROLES)


def _files_in(data: Path) -> dict[Path, bytes]:
    """Return the files of a formatted folder, except the ids of its node."""
    files = (path for path in data.rglob("*") if path.is_file() and path.name != _IDS)
    return {path.relative_to(data): path.read_bytes() for path in files}
