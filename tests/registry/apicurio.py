"""Runs a real schema registry with Confluent's API (Apicurio, from Maven) that tests can restart; a restart deletes its
schemas."""

import json
import subprocess
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from tests.broker.child_processes import killed_with_parent
from tests.broker.ports import free_ports

FOLDER = Path(__file__).parents[2] / ".registry"
_START_SECONDS = 180
_VERSION = "2.5.11.Final"


@dataclass
class Apicurio:
    """One registry process on a port of its own."""

    folder: Path
    port: int = 0
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def start(self) -> "Apicurio":
        self.folder.mkdir(parents=True, exist_ok=True)
        runner = self.folder / f"apicurio-registry-app-{_VERSION}-runner.jar"
        if not runner.exists():
            archive = FOLDER / f"apicurio-registry-app-{_VERSION}-all.tar.gz"
            assert archive.exists(), "the registry is not installed: run make registry"
            with tarfile.open(archive) as files:
                files.extractall(self.folder, filter="data")
        self.port = self.port or free_ports(1)
        log = (self.folder / "registry.log").open("ab")
        options = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1")
        self.process = subprocess.Popen(
            killed_with_parent(["java", *options, f"-Dquarkus.http.port={self.port}", "-jar", str(runner)]),
            stdout=log,
            stderr=log,
            cwd=self.folder,
        )
        log.close()
        self._wait_until_up()
        return self

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def register(self, subject: str, schema: str, kind: str = "AVRO", references: list[Any] | None = None) -> int:
        """Return its current id."""
        body = {"schema": schema, "schemaType": kind, "references": references or []}
        answer = self._ask(f"/subjects/{subject}/versions", body)
        identity: int = answer["id"]
        return identity

    def delete(self, path: str) -> None:
        with urlopen(Request(self.url + path, method="DELETE"), timeout=60):
            return

    def _ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        with urlopen(Request(self.url + path, data, headers), timeout=60) as answer:
            return json.load(answer)

    def _wait_until_up(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            assert self.process is not None
            assert self.process.poll() is None, (self.folder / "registry.log").read_text()[-3000:]
            try:
                self._ask("/subjects")
                return
            except (URLError, OSError):
                time.sleep(0.2)  # no event announces that the registry responds
        raise AssertionError(f"no registry within {_START_SECONDS} s")
