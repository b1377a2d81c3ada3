"""`make peers-suites` runs a suite at a broker and through the proxy, and names the tests with different results."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.peers_suites import different_results
from tests.oracle.kafka_java import ROOT

_SUITE = """package kgo
import ("net"; "os"; "testing")
func TestConnects(t *testing.T) {
	connection, err := net.Dial("tcp", os.Getenv("KGO_SEEDS"))
	if err != nil { t.Fatal(err) }
	connection.Close()
}
func TestOnce(t *testing.T) {
	t.Run("first", func(t *testing.T) {
		if _, err := os.Stat("ran"); err == nil { t.Fatal("again") }
		os.WriteFile("ran", nil, 0o600)
	})
}
func TestSkipped(t *testing.T) { t.Skip() }
"""


@pytest.mark.long
def test_a_go_test_that_fails_only_through_the_proxy_is_reported(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("Go is not installed: `make test-tools`")
    (tmp_path / "pkg/kgo").mkdir(parents=True)
    (tmp_path / "go.mod").write_text("module example\n\ngo 1.21\n")
    (tmp_path / "pkg/kgo/kgo_test.go").write_text(_SUITE)

    done = subprocess.run(
        [sys.executable, "-m", "tests.clients.peers_suites"],
        cwd=ROOT, env=os.environ | {"FRANZ_GO": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.stdout.splitlines() == [
        "FRANZ_GO on Kafka 4.3.1 at the broker: 3 pass, 1 skip",
        "FRANZ_GO on Kafka 4.3.1 through the proxy: 2 fail, 1 pass, 1 skip",
        "  TestOnce: pass at the broker, fail through the proxy",
        "  TestOnce/first: pass at the broker, fail through the proxy",
    ], done.stderr
    assert done.returncode == 1


def test_a_test_that_ran_only_at_the_broker_is_reported_as_a_difference() -> None:
    assert different_results({"a": "pass", "b": "fail"}, {"b": "fail", "c": "skip"}) == [
        "  a: pass at the broker, not run through the proxy",
        "  c: not run at the broker, skip through the proxy",
    ]
