"""Reads the files in deploy/ as a cluster or a container engine would."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.oracle.kafka_java import ROOT

DEPLOY = ROOT / "deploy"
UID = 10001
"""The user with which the image runs (Dockerfile)."""


def yaml_documents(file: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(file.read_text()) if document is not None]


def documents_of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [document for document in found if document["kind"] == kind]


def configurations_in_config_maps(found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the configuration files in ConfigMaps."""
    for document in documents_of_kind(found, "ConfigMap"):
        yield from (text for name, text in document["data"].items() if name == "sluicegate.yaml")


def containers(found: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every container, each with the spec of its pod."""
    for document in documents_of_kind(found, "Deployment"):
        pod = document["spec"]["template"]["spec"]
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            yield pod, container


def sluicegate_containers(found: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the containers that run the proxy."""
    return [(pod, container) for pod, container in containers(found) if container["name"] == "sluicegate"]
