"""Each dependency is locked with the digests of its files, and the inventory follows CycloneDX."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.kafka_java import ROOT

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_VALIDATE = """import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = sys.stdin.read()
error = JsonStrictValidator(SchemaVersion.from_version(json.loads(text)["specVersion"])).validate_str(text)
sys.exit(None if error is None else str(error.data)[:2000])
"""


def run_make(*arguments: str) -> None:
    """Run `make` in an existing environment."""
    subprocess.run(["make", "--silent", "-o", "setup", "-o", ".venv/.installed", *arguments], cwd=ROOT, check=True)


def locked_packages() -> list[dict[str, Any]]:
    packages: list[dict[str, Any]] = tomllib.loads((ROOT / "uv.lock").read_text())["package"]
    return [package for package in packages if package["name"] != "sluicegate"]


def test_every_dependency_is_locked_to_file_digests() -> None:
    assert len(locked_packages()) > 50
    for package in locked_packages():
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]

        assert set(package["source"]) == {"registry"}, f"{package['name']} does not come from a registry"
        assert package["version"] and files
        assert all(_DIGEST.fullmatch(file["hash"]) for file in files), package["name"]


def test_the_audited_packages_are_the_locked_ones_with_their_digests() -> None:
    subprocess.run([ROOT / "scripts/export-locked"], check=True)

    lines = (ROOT / "build/locked.txt").read_text().replace("\\\n", " ").splitlines()
    wanted = [line for line in lines if line and not line.lstrip().startswith("#")]
    versions = {(package["name"], package["version"]) for package in locked_packages()}
    assert len(wanted) > 30
    for line in wanted:
        name, _, version = line.split()[0].partition("==")
        assert (name, version) in versions, line
        assert "--hash=sha256:" in line, name


@pytest.fixture(scope="module")
def inventory() -> str:
    run_make("sbom")
    return (ROOT / "dist/sbom.cdx.json").read_text()


def schema_errors(inventory: str) -> str:
    """Return the errors of CycloneDX's own schema."""
    version = re.search(r"^CYCLONEDX_VERSION := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert version is not None
    uv = Path(ROOT, ".venv/bin/uv")
    command = [uv, "tool", "run", "--quiet", "--from", f"cyclonedx-bom=={version[1]}", "python", "-c", _VALIDATE]
    return subprocess.run(command, input=inventory, capture_output=True, text=True, check=False).stderr


def test_the_inventory_follows_cyclonedxs_schema_and_names_installed_packages(inventory: str) -> None:
    assert schema_errors(inventory) == ""
    broken = json.loads(inventory)
    del broken["components"][0]["name"]
    assert "'name' is a required property" in schema_errors(json.dumps(broken))

    named = {component["name"].lower().replace("_", "-") for component in json.loads(inventory)["components"]}
    assert {"confluent-kafka", "cramjam", "uvloop", "pydantic", "zstandard"} & named >= {
        "uvloop",
        "pydantic",
        "cramjam",
    }
    assert {"preact", "htm", "uplot"} <= named  # libraries of the web UI


_UNLICENSED = {"axe-playwright-python", "cel-python"}
"""Packages that only the tests use, and whose metadata name no licence."""


def test_each_component_of_the_inventory_has_a_licence(inventory: str) -> None:
    components = json.loads(inventory)["components"]

    assert {each["name"] for each in components if not each.get("licenses")} <= _UNLICENSED


def test_the_inventory_of_each_image_has_the_libraries_of_the_web_ui() -> None:
    written = re.findall(r"cyclonedx-py environment.*?(?=\n\n)", (ROOT / "Dockerfile").read_text(), re.DOTALL)

    assert len(written) == 2
    assert all("-m sluicegate.proxy.webui.vendored /opt/sluicegate/sbom.cdx.json" in each for each in written)
