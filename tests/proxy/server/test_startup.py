"""`check` and a start report problems with `otel`: missing packages, and unusable files."""

import subprocess
import sys
from pathlib import Path

import pytest

from sluicegate.config.loading import config_of
from sluicegate.proxy.reload.config_check import flaws_in
from sluicegate.proxy.server.server import Server
from sluicegate.proxy.server.startup import CannotStart
from sluicegate.proxy.workers.supervisor import Supervisor

LEAST = {"upstream": {"bootstrap": "127.0.0.1:1"}, "listen": {"bootstrap": "127.0.0.1:0", "broker_port_base": 20000}}
ENDPOINT = "https://collector.internal:4318"
MISSING = "otel needs OpenTelemetry's exporters: pip install 'sluicegate[otel]', or remove the section otel"


@pytest.fixture
def without_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)


@pytest.mark.usefixtures("without_exporter")
@pytest.mark.parametrize(("kind", "workers"), [(Server, 1), (Supervisor, 2)])
async def test_check_and_start_report_a_missing_otel_package(
    kind: type[Server] | type[Supervisor], workers: int
) -> None:
    config = config_of(LEAST | {"otel": {"endpoint": ENDPOINT}, "workers": workers})

    assert [(flaw.key, flaw.message) for flaw in flaws_in(config)] == [("otel", MISSING)]
    with pytest.raises(CannotStart) as raised:
        await kind(config).start()
    assert str(raised.value) == MISSING


def test_unusable_otel_files_are_reported_by_key_without_their_contents(tmp_path: Path) -> None:
    headers = tmp_path / "headers"
    headers.write_text("S3CRET")
    otel = {"endpoint": ENDPOINT, "headers_file": str(headers), "tls": {"ca_file": str(tmp_path / "none")}}

    found = list(flaws_in(config_of(LEAST | {"otel": otel})))

    assert [flaw.key for flaw in found] == ["otel.headers_file", "otel.tls.ca_file"]
    assert "S3CRET" not in str(found)


def test_libraries_of_optional_features_are_not_imported_at_the_start() -> None:
    packages = {"cryptography", "re2", "cramjam", "cel_expr_python", "opentelemetry", "confluent_kafka"}
    loaded = "import sys, sluicegate.proxy.workers.running; print(*sys.modules)"

    completed = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)

    assert packages & set(completed.stdout.split()) == set()
