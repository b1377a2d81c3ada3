"""The chart handles values that Helm or Kubernetes treats specially: numbers, scopes, one port, drains and egress."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.broker.certificates import Authority
from tests.deploy.manifests import configurations_in_config_maps, documents_of_kind, sluicegate_containers
from tests.deploy.test_kubernetes import CHART, render_chart
from tests.proxy.cli.test_commands import sluicegate

LARGEST = 2**63 - 1
EXACT = 2**53 - 1
"""The largest integer that Helm passes on unchanged, because it parses numbers as IEEE 754 doubles."""


def values_file_arguments(folder: Path, content: dict[str, Any]) -> tuple[str, str]:
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(content))
    return "--values", str(file)


def helm_error(*options: str) -> str:
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed (not in Debian): the chart is not rendered")
    done = subprocess.run(
        ["helm", "template", "release", str(CHART), *options], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout
    return done.stderr


def checked_configuration(found: list[dict[str, Any]], folder: Path) -> dict[str, Any]:
    """Return the rendered configuration, after `sluicegate check` has accepted it."""
    token = folder / "token"
    token.write_text("secret")
    (text,) = configurations_in_config_maps(found)
    file = folder / "sluicegate.yaml"
    file.write_text(text.replace("/etc/sluicegate-admin/token", str(token)))
    checked = sluicegate("check", str(file))
    assert checked.returncode == 0, checked.stderr
    read: dict[str, Any] = yaml.safe_load(text)
    return read


@pytest.mark.parametrize("written", [str(LARGEST), "none", "7d", EXACT, str(EXACT), 604_800_000])
def test_the_chart_renders_numbers_unchanged(written: str | int, tmp_path: Path) -> None:
    bound = {"message.timestamp.before.max.ms": written}

    found = render_chart(tmp_path, *values_file_arguments(tmp_path, {"configuration": {"defaults": bound}}))

    assert checked_configuration(found, tmp_path)["defaults"]["message.timestamp.before.max.ms"] == written


@pytest.mark.parametrize(
    "content",
    [
        {"configuration": {"defaults": {"message.timestamp.before.max.ms": LARGEST}}},
        {"configuration": {"topics": [{"match": "a", "message.timestamp.after.max.ms": EXACT + 1}]}},
        {"configuration": {"limits": {"max_buffered_bytes": LARGEST}}},
        {"policies": {"a": {"scope": "a", "topics": [{"match": "a", "message.timestamp.after.max.ms": LARGEST}]}}},
    ],
    ids=["defaults", "topics", "limits", "policies"],
)
def test_a_number_that_helm_would_change_is_rejected_unless_quoted(content: dict[str, Any], tmp_path: Path) -> None:
    assert "in quotes" in helm_error(*values_file_arguments(tmp_path, content))


def test_a_quoted_number_is_a_number(tmp_path: Path) -> None:
    listen = {"broker_port_base": "19100", "broker_port_map": {2: "20000"}}
    content = {
        "replicaCount": "3",
        "brokerIds": ["0", 1, "2"],
        "terminationGracePeriodSeconds": "1000000",
        "configuration": {"listen": listen, "limits": {"max_in_flight": "7"}, "drain_timeout_seconds": "30"},
        "podDisruptionBudget": {"enabled": True, "minAvailable": "2"},
        "networkPolicy": {"enabled": True, "brokersPort": "9093"},
    }

    found = render_chart(tmp_path, *values_file_arguments(tmp_path, content))

    assert checked_configuration(found, tmp_path)["listen"]["broker_port_base"] == "19100"
    ports = {port["name"]: port["port"] for port in documents_of_kind(found, "Service")[0]["spec"]["ports"]}
    assert ports == {"bootstrap": 19092, "broker-0": 19100, "broker-1": 19101, "broker-2": 20_000}
    assert documents_of_kind(found, "Deployment")[0]["spec"]["replicas"] == 3
    ((pod, _),) = sluicegate_containers(found)
    assert pod["terminationGracePeriodSeconds"] == 1_000_000
    assert documents_of_kind(found, "PodDisruptionBudget")[0]["spec"]["minAvailable"] == 2
    (policy,) = documents_of_kind(found, "NetworkPolicy")
    assert {"port": 9093, "protocol": "TCP"} in [
        port for rule in policy["spec"]["egress"] for port in rule.get("ports", ())
    ]


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("configuration.listen.broker_port_base", "65536"),
        ("configuration.listen.broker_port_base", "0"),
        ("replicaCount", "two"),
        ("networkPolicy.brokersPort", "70000"),
    ],
)
def test_a_quoted_number_out_of_range_is_rejected(key: str, written: str) -> None:
    assert key in helm_error("--set-string", f"{key}={written}")


def test_a_quoted_number_of_pods_that_blocks_drains_is_rejected() -> None:
    options = ("--set", "podDisruptionBudget.enabled=true", "--set-string", "podDisruptionBudget.minAvailable=2")
    assert "leaves none for a node drain" in helm_error(*options)


@pytest.mark.parametrize("scope", [{}, {"scope": []}, {"scope": ""}, {"scope": None}], ids=str)
def test_a_policy_without_a_scope_is_rejected(scope: dict[str, Any], tmp_path: Path) -> None:
    policy = {"topics": [{"match": "*", "checks": "none"}], **scope}

    assert "scope" in helm_error(*values_file_arguments(tmp_path, {"policies": {"one": policy}}))


def test_all_brokers_share_the_bootstrap_port_by_sni(tmp_path: Path) -> None:
    certificate = Authority(tmp_path).sign("proxy", "*.kafka.example.com")
    listen = {
        "broker_host": "broker-{node_id}.kafka.example.com",
        "tls": {"certificate_file": str(certificate.chain), "key_file": str(certificate.key)},
    }

    found = render_chart(
        tmp_path,
        *values_file_arguments(tmp_path, {"configuration": {"listen": listen}, "networkPolicy": {"enabled": True}}),
    )

    assert "broker_port_base" not in checked_configuration(found, tmp_path)["listen"]
    ((_, container),) = sluicegate_containers(found)
    assert [port["name"] for port in container["ports"]] == ["bootstrap", "admin"]
    assert [port["name"] for port in documents_of_kind(found, "Service")[0]["spec"]["ports"]] == ["bootstrap"]
    (policy,) = documents_of_kind(found, "NetworkPolicy")
    assert policy["spec"]["ingress"][0]["ports"] == [{"port": 19092, "protocol": "TCP"}]


def test_ports_are_those_of_the_map_or_follow_the_bootstrap_port(tmp_path: Path) -> None:
    listen = {"broker_port_base": None, "broker_port_map": {2_000_000_000: 20_000}}

    found = render_chart(
        tmp_path,
        *values_file_arguments(tmp_path, {"brokerIds": [1, 2_000_000_000], "configuration": {"listen": listen}}),
    )

    assert "broker_port_base" not in checked_configuration(found, tmp_path)["listen"]
    ports = {port["name"]: port["port"] for port in documents_of_kind(found, "Service")[0]["spec"]["ports"]}
    assert ports == {"bootstrap": 19092, "broker-1": 19094, "b-2000000000": 20_000}
    assert all(len(name) <= 15 for name in ports)  # Kubernetes' limit for names of ports


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_disruption_budget_allows_one_pod_to_be_drained(replicas: int, tmp_path: Path) -> None:
    (budget,) = documents_of_kind(render_chart(tmp_path, "--set", f"replicaCount={replicas}"), "PodDisruptionBudget")

    assert budget["spec"]["maxUnavailable"] == 1
    assert "minAvailable" not in budget["spec"]


def test_a_minimum_of_available_pods_that_blocks_drains_is_rejected(tmp_path: Path) -> None:
    minimum = ("--set", "podDisruptionBudget.minAvailable=1")

    assert "node drain" in helm_error(*minimum, "--set", "replicaCount=1")
    (budget,) = documents_of_kind(render_chart(tmp_path, *minimum, "--set", "replicaCount=2"), "PodDisruptionBudget")
    assert budget["spec"]["minAvailable"] == 1
    assert "maxUnavailable" not in budget["spec"]


def test_the_network_policy_has_the_rules_of_the_values(tmp_path: Path) -> None:
    rule = {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": 8081, "protocol": "TCP"}]}

    found = render_chart(
        tmp_path, *values_file_arguments(tmp_path, {"networkPolicy": {"enabled": True, "egress": [rule]}})
    )

    (policy,) = documents_of_kind(found, "NetworkPolicy")
    assert policy["spec"]["egress"][-1] == rule
    assert len(policy["spec"]["egress"]) == 3


def test_connections_spread_unless_the_limit_is_removed(tmp_path: Path) -> None:
    assert checked_configuration(render_chart(tmp_path), tmp_path)["limits"]["max_connection_age_seconds"] == "1h"
    removed = values_file_arguments(tmp_path, {"configuration": {"limits": {"max_connection_age_seconds": None}}})
    assert (
        "max_connection_age_seconds" not in checked_configuration(render_chart(tmp_path, *removed), tmp_path)["limits"]
    )
