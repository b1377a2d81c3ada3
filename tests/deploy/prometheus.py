"""Runs a real Prometheus and its promtool from Debian's package, in a separate folder."""

import json
import re
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.deploy.queries import JOB

NEEDS_PROMETHEUS = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="there is no prometheus: install Debian's package `prometheus`"
)
NEEDS_PROMTOOL = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="there is no promtool: install Debian's package `prometheus`"
)


def promtool(*arguments: str | Path, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    command = ["promtool", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=False)


def shorten_alert_rules(rules: Path, folder: Path) -> Path:
    """Copy alert rules so that they fire within seconds: each `for:` becomes 3 s, and each range 10 s.

    The same by hand: `sed -E 's/( for:) .*/\\1 3s/; s/\\[[0-9]+[mh]\\]/[10s]/g' sluicegate.rules.yaml`.
    """
    file = folder / "shortened.rules.yaml"
    file.write_text(re.sub(r"\[[0-9]+[mh]\]", "[10s]", re.sub(r"( for:) .*", r"\1 3s", rules.read_text())))
    return file


class Prometheus:
    """Scrapes `target` (host:port) once a second, with these alert rules.

    `labels` are added to the target's series; alerts go to `alertmanager` (host:port), if there is one.
    """

    def __init__(
        self,
        folder: Path,
        target: str,
        rules: Path,
        *,
        labels: dict[str, str] | None = None,
        alertmanager: str | None = None,
    ) -> None:
        self._port = free_ports(1)
        self._folder = folder
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": [target], "labels": labels or {}}]}],
        }
        if alertmanager is not None:
            config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
        (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Prometheus":
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                killed_with_parent(
                    [
                        "prometheus",
                        f"--config.file={self._folder / 'prometheus.yaml'}",
                        f"--storage.tsdb.path={self._folder / 'data'}",
                        f"--web.listen-address=127.0.0.1:{self._port}",
                    ]
                ),
                stdout=log,
                stderr=log,
            )
        eventually(self._is_ready, what=f"Prometheus is ready; see {self._folder / 'prometheus.log'}")
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(60)

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Return the series of a query with their current values. Raises AssertionError if the query is invalid."""
        answer = self._get(f"/api/v1/query?{urllib.parse.urlencode({'query': query})}")
        assert answer["status"] == "success", answer
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result

    def rules_with_errors(self) -> list[str]:
        groups = self._get("/api/v1/rules")["data"]["groups"]
        return [f"{rule['name']}: {rule['lastError']}" for g in groups for rule in g["rules"] if rule.get("lastError")]

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=30) as answer:
            return json.load(answer)

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()[-2000:]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False
