"""The plain manifests and the chart: what they configure can be used, and what they name fits together."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.manifests import DEPLOY, UID, configurations, containers, documents, of_kind, sluicegates
from tests.proxy.cli.test_commands import sluicegate

PLAIN = [DEPLOY / "kubernetes/standalone.yaml", DEPLOY / "kubernetes/sidecar.yaml"]
CHART = DEPLOY / "helm/sluicegate"
EVERYTHING = ["--set", "serviceMonitor.enabled=true", "--set", "networkPolicy.enabled=true", "--set", "secrets={kafka}"]


def rendered(folder: Path, *options: str) -> list[dict[str, Any]]:
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed (not in Debian): the chart is not rendered")
    done = subprocess.run(
        ["helm", "template", "release", str(CHART), "--namespace", "here", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    file = folder / "rendered.yaml"
    file.write_text(done.stdout)
    return documents(file)


def fits_together(found: list[dict[str, Any]], folder: Path) -> None:
    """Checks for all manifests, however they were written."""
    configured = list(configurations(found))
    assert configured
    for text in configured:
        file = folder / "sluicegate.yaml"
        file.write_text(text)
        checked = sluicegate("check", str(file))
        assert checked.returncode == 0, checked.stderr
        assert "warning" not in checked.stdout
    assert sluicegates(found)
    for _, container in containers(found):
        own = container["securityContext"]
        assert own["readOnlyRootFilesystem"] is True
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
    for pod, container in sluicegates(found):
        assert {**pod["securityContext"], **container["securityContext"]}["runAsUser"] == UID
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["terminationGracePeriodSeconds"] > 30  # drain_timeout_seconds' default
        volumes = {volume["name"] for volume in pod["volumes"]}
        mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        assert {mount["name"] for mount in mounts.values()} <= volumes
        assert "/var/lib/sluicegate" in mounts  # the image's working folder
        assert "subPath" not in mounts["/etc/sluicegate"]  # else a change never arrives
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        for probe in ("startupProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["port"] in ports


def ports_agree(found: list[dict[str, Any]]) -> None:
    """Ports of a Service lead to ports that the configuration opens."""
    (text,) = configurations(found)
    config = yaml.safe_load(text)
    ((_, container),) = sluicegates(found)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["bootstrap"] == int(config["listen"]["bootstrap"].rpartition(":")[2])
    assert ports["admin"] == int(config["admin"]["listen"].rpartition(":")[2])
    brokers = {name: port for name, port in ports.items() if name.startswith("broker-")}
    assert brokers
    assert all(port == config["listen"]["broker_port_base"] + int(name[7:]) for name, port in brokers.items())
    services = of_kind(found, "Service")
    offered = {port["targetPort"]: port["port"] for service in services for port in service["spec"]["ports"]}
    assert offered == ports  # clients get these numbers
    told = config["listen"]["advertised_host"].split(".")[0]
    assert told in {service["metadata"]["name"] for service in services}
    labels = of_kind(found, "Deployment")[0]["spec"]["template"]["metadata"]["labels"]
    selectors = [service["spec"]["selector"] for service in services]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in of_kind(found, "PodDisruptionBudget")]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in of_kind(found, "NetworkPolicy")]
    assert all(selector.items() <= labels.items() for selector in selectors)


@pytest.mark.parametrize("file", PLAIN, ids=lambda file: file.stem)
def test_plain_manifests_fit_together(file: Path, tmp_path: Path) -> None:
    fits_together(documents(file), tmp_path)


def test_the_standalone_ports_match_the_configuration() -> None:
    found = documents(PLAIN[0])

    ports_agree(found)
    (policy,) = of_kind(found, "NetworkPolicy")
    open_to_clients = policy["spec"]["ingress"][0]["ports"]
    assert {(port["port"], port.get("endPort")) for port in open_to_clients} == {(19092, None), (19100, 19102)}


def test_prometheus_is_led_to_the_admin_port() -> None:
    (monitor,) = documents(DEPLOY / "kubernetes/servicemonitor.yaml")
    wanted = monitor["spec"]["selector"]["matchLabels"]

    services = of_kind(documents(PLAIN[0]), "Service")

    (seen,) = [one for one in services if wanted.items() <= one["metadata"]["labels"].items()]
    assert monitor["spec"]["endpoints"][0]["port"] in [port["name"] for port in seen["spec"]["ports"]]


@pytest.mark.long
def test_the_chart_with_defaults_and_with_all_values(tmp_path: Path) -> None:
    for options in (
        [],
        EVERYTHING,
        ["--set", "brokerIds={1,2}", "--set", "configuration.listen.broker_port_base=20000"],
    ):
        found = rendered(tmp_path, *options)
        fits_together(found, tmp_path)
        ports_agree(found)


def test_helm_lints_the_chart() -> None:
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed (not in Debian): the chart is not linted")
    done = subprocess.run(["helm", "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_charts_own_configuration_can_be_used(tmp_path: Path) -> None:
    """Without helm: what values.yaml configures."""
    (values,) = documents(CHART / "values.yaml")
    values["configuration"]["listen"]["advertised_host"] = "what.the.template.adds"
    file = tmp_path / "sluicegate.yaml"
    file.write_text(yaml.safe_dump(values["configuration"]))

    assert sluicegate("check", str(file)).returncode == 0
    (chart,) = documents(CHART / "Chart.yaml")
    assert f'version = "{chart["appVersion"]}"' in (DEPLOY.parent / "pyproject.toml").read_text()
