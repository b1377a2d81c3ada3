"""The plain manifests and the chart contain a valid configuration, and their names refer to each other correctly."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sluicegate.config.model import POLICIES
from tests.deploy.manifests import (
    DEPLOY,
    UID,
    configurations_in_config_maps,
    containers,
    documents_of_kind,
    sluicegate_containers,
    yaml_documents,
)
from tests.deploy.queries import DASHBOARD, JOB
from tests.proxy.cli.test_commands import sluicegate

PLAIN = [DEPLOY / "kubernetes/standalone.yaml", DEPLOY / "kubernetes/sidecar.yaml"]
CHART = DEPLOY / "helm/sluicegate"
_MONITORING = [
    *("--set", "serviceMonitor.enabled=true", "--set", "serviceMonitor.cluster=prod"),
    *("--set", "prometheusRule.enabled=true", "--set", "dashboard.enabled=true"),
]
EVERYTHING = [*_MONITORING, "--set", "networkPolicy.enabled=true", "--set", "secrets={kafka}"]
EVERYTHING += ["--set", "extraVolumes[0].name=ca,extraVolumes[0].configMap.name=ca"]
EVERYTHING += ["--set", "extraVolumeMounts[0].name=ca,extraVolumeMounts[0].mountPath=/ca"]


def render_chart(folder: Path, *options: str) -> list[dict[str, Any]]:
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
    return yaml_documents(file)


def _token(folder: Path) -> Path:
    file = folder / "token"
    file.write_text("secret")
    return file


def check_manifests_match(found: list[dict[str, Any]], folder: Path) -> None:
    """Checks for all manifests, however they were written."""
    configured = list(configurations_in_config_maps(found))
    assert configured
    for text in configured:
        file = folder / "sluicegate.yaml"
        file.write_text(text.replace("/etc/sluicegate-admin/token", str(_token(folder))))
        checked = sluicegate("check", str(file))
        assert checked.returncode == 0, checked.stderr
        assert "warning" not in checked.stdout
    assert sluicegate_containers(found)
    for _, container in containers(found):
        own = container["securityContext"]
        assert own["readOnlyRootFilesystem"] is True
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
    for pod, container in sluicegate_containers(found):
        assert {**pod["securityContext"], **container["securityContext"]}["runAsUser"] == UID
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["terminationGracePeriodSeconds"] > 30  # the default of drain_timeout_seconds
        volumes = {volume["name"] for volume in pod["volumes"]}
        mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        assert {mount["name"] for mount in mounts.values()} <= volumes
        assert "/var/lib/sluicegate" in mounts  # the image's working folder
        assert "subPath" not in mounts["/etc/sluicegate"]  # otherwise a change would never reach the container
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        for probe in ("startupProbe", "livenessProbe"):
            assert container[probe]["httpGet"]["port"] in ports


def check_ports_match(found: list[dict[str, Any]]) -> None:
    """Check that the ports of a Service lead to ports that the configuration opens."""
    (text,) = configurations_in_config_maps(found)
    config = yaml.safe_load(text)
    ((_, container),) = sluicegate_containers(found)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["bootstrap"] == int(config["listen"]["bootstrap"].rpartition(":")[2])
    assert ports["admin"] == int(config["admin"]["listen"].rpartition(":")[2])
    brokers = {name: port for name, port in ports.items() if name.startswith("broker-")}
    assert brokers
    assert all(port == config["listen"]["broker_port_base"] + int(name[7:]) for name, port in brokers.items())
    services = documents_of_kind(found, "Service")
    offered = {port["targetPort"]: port["port"] for service in services for port in service["spec"]["ports"]}
    assert offered == ports  # clients connect to these numbers
    told = config["listen"]["advertised_host"].split(".")[0]
    assert told in {service["metadata"]["name"] for service in services}
    labels = documents_of_kind(found, "Deployment")[0]["spec"]["template"]["metadata"]["labels"]
    selectors = [service["spec"]["selector"] for service in services]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in documents_of_kind(found, "PodDisruptionBudget")]
    selectors += [one["spec"]["podSelector"]["matchLabels"] for one in documents_of_kind(found, "NetworkPolicy")]
    assert all(selector.items() <= labels.items() for selector in selectors)


@pytest.mark.parametrize("file", PLAIN, ids=lambda file: file.stem)
def test_names_and_ports_of_the_plain_manifests_match_each_other(file: Path, tmp_path: Path) -> None:
    check_manifests_match(yaml_documents(file), tmp_path)


def test_the_standalone_ports_match_the_configuration() -> None:
    found = yaml_documents(PLAIN[0])

    check_ports_match(found)
    (policy,) = documents_of_kind(found, "NetworkPolicy")
    open_to_clients = policy["spec"]["ingress"][0]["ports"]
    assert {(port["port"], port.get("endPort")) for port in open_to_clients} == {(19092, None), (19100, 19102)}


def test_the_service_monitor_selects_the_admin_port() -> None:
    (monitor,) = yaml_documents(DEPLOY / "kubernetes/servicemonitor.yaml")
    wanted = monitor["spec"]["selector"]["matchLabels"]

    services = documents_of_kind(yaml_documents(PLAIN[0]), "Service")

    (seen,) = [one for one in services if wanted.items() <= one["metadata"]["labels"].items()]
    assert monitor["spec"]["endpoints"][0]["port"] in [port["name"] for port in seen["spec"]["ports"]]


@pytest.mark.long
def test_the_chart_renders_matching_names_and_ports_with_default_and_all_values(tmp_path: Path) -> None:
    for options in (
        [],
        EVERYTHING,
        ["--set", "brokerIds={1,2}", "--set", "configuration.listen.broker_port_base=20000"],
    ):
        found = render_chart(tmp_path, *options)
        check_manifests_match(found, tmp_path)
        check_ports_match(found)


def render_chart_with_policies(folder: Path, **changed: Any) -> list[dict[str, Any]]:
    values = {
        "policies": {
            "payments": {"scope": ["payments.*"], "topics": [{"match": "payments.*", "mode": "reject"}]},
            "orders": {"scope": "orders", "topics": [{"match": "orders"}]},
        },
        **changed,
    }
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    return render_chart(folder, "--values", str(file))


def pod_template(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the template of the pods: a change of it rolls them."""
    template: dict[str, Any] = documents_of_kind(found, "Deployment")[0]["spec"]["template"]
    return template


def test_each_team_has_a_policy_file_within_its_scope(tmp_path: Path) -> None:
    found = render_chart_with_policies(tmp_path)

    ((pod, container),) = sluicegate_containers(found)
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    maps = {one["metadata"]["name"]: one["data"] for one in documents_of_kind(found, "ConfigMap")}
    config = yaml.safe_load(next(text for text in configurations_in_config_maps(found)))
    config["topic_files"] = [
        {**item, "path": item["path"].replace("/etc/sluicegate-policies", str(tmp_path))}
        for item in config["topic_files"]
    ]
    config["admin"]["token_file"] = str(_token(tmp_path))
    for volume in pod["volumes"]:
        if volume["name"].startswith("policies-"):
            folder = tmp_path / Path(mounts[volume["name"]]).name
            folder.mkdir()
            (folder / "policies.yaml").write_text(maps[volume["configMap"]["name"]]["policies.yaml"])
    file = tmp_path / "sluicegate.yaml"
    file.write_text(yaml.safe_dump(config))

    explained = sluicegate("explain", str(file), "payments.eu")
    assert explained.returncode == 0, explained.stderr
    assert "payments/policies.yaml" in explained.stdout
    (tmp_path / "payments/policies.yaml").write_text("topics: [{match: 'orders.*'}]")
    checked = sluicegate("check", str(file))
    assert (checked.returncode, "payments.*" in checked.stderr) == (1, True), checked


def test_a_policy_change_does_not_roll_the_pods_and_other_changes_do(tmp_path: Path) -> None:
    before = pod_template(render_chart_with_policies(tmp_path))
    (values,) = yaml_documents(CHART / "values.yaml")
    other = {"payments": {"scope": ["payments.*"], "topics": [{"match": "payments.*", "mode": "observe"}]}}

    assert (
        pod_template(
            render_chart_with_policies(tmp_path, policies=other | {"orders": {"scope": "orders", "topics": []}})
        )
        == before
    )
    for key in POLICIES:
        changed = values["configuration"] | {key: values["configuration"].get(key) or {"changed": True}}
        assert pod_template(render_chart_with_policies(tmp_path, configuration=changed)) == before, key
    again = values["configuration"] | {"workers": 2}
    assert pod_template(render_chart_with_policies(tmp_path, configuration=again)) != before


def test_alerts_link_to_the_configured_runbook_and_use_the_monitors_job(tmp_path: Path) -> None:
    found = render_chart(tmp_path, *_MONITORING, "--set", "runbookUrl=https://wiki.example.com/runbook")

    (rule,), (monitor,) = documents_of_kind(found, "PrometheusRule"), documents_of_kind(found, "ServiceMonitor")
    links = {
        each["annotations"]["runbook_url"]
        for group in rule["spec"]["groups"]
        for each in group["rules"]
        if "alert" in each
    }
    assert len(links) > 20
    assert all(link.startswith("https://wiki.example.com/runbook#") for link in links)
    (admin,) = [
        one
        for one in documents_of_kind(found, "Service")
        if one["metadata"]["labels"].get("app.kubernetes.io/component")
    ]
    assert admin["metadata"]["labels"][monitor["spec"]["jobLabel"]] == JOB
    (shown,) = [one for one in documents_of_kind(found, "ConfigMap") if one["metadata"]["name"].endswith("-dashboard")]
    assert shown["data"]["sluicegate.json"].strip() == DASHBOARD.read_text().strip()


def test_the_chart_mounts_the_configured_admin_token_and_its_notes_name_it(tmp_path: Path) -> None:
    found = render_chart(tmp_path)

    (secret,), ((pod, container),) = documents_of_kind(found, "Secret"), sluicegate_containers(found)
    (volume,) = [
        each for each in pod["volumes"] if each.get("secret", {}).get("secretName") == secret["metadata"]["name"]
    ]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == volume["name"]]
    config = yaml.safe_load(next(text for text in configurations_in_config_maps(found)))
    assert config["admin"]["token_file"] == f"{mount['mountPath']}/{next(iter(secret['data']))}"
    assert not documents_of_kind(render_chart(tmp_path, "--set", "adminToken.secretName=mine"), "Secret")
    none = render_chart(tmp_path, "--set", "adminToken.create=false")
    assert "token_file" not in next(text for text in configurations_in_config_maps(none))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("replicaCountt=3", "replicaCountt"),
        ("serviceMonitor.intervall=5s", "intervall"),
        ("configuration.listen.bootstrap=here", "configuration.listen.bootstrap"),
        ("policies.Payments.topics=[]", "Payments"),
    ],
)
def test_an_unknown_or_wrong_chart_value_is_rejected(value: str, words: str) -> None:
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed (not in Debian): the chart is not rendered")
    done = subprocess.run(
        ["helm", "template", "release", str(CHART), "--set", value], capture_output=True, text=True, check=False
    )
    assert (done.returncode, words in done.stderr) == (1, True), done.stderr


def test_helm_lints_the_chart() -> None:
    if shutil.which("helm") is None:
        pytest.skip("helm is not installed (not in Debian): the chart is not linted")
    done = subprocess.run(["helm", "lint", "--strict", str(CHART)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_check_accepts_the_configuration_of_the_charts_values(tmp_path: Path) -> None:
    """Checks the configuration in values.yaml directly, without helm."""
    (values,) = yaml_documents(CHART / "values.yaml")
    values["configuration"]["listen"]["advertised_host"] = "what.the.template.adds"
    file = tmp_path / "sluicegate.yaml"
    file.write_text(yaml.safe_dump(values["configuration"]))

    assert sluicegate("check", str(file)).returncode == 0
    (chart,) = yaml_documents(CHART / "Chart.yaml")
    assert f'version = "{chart["appVersion"]}"' in (DEPLOY.parent / "pyproject.toml").read_text()
