#!/usr/bin/env python3
"""Prints the version of the project. Fails if the package, chart, compose file and pages, or a given tag, disagree.

scripts/release/version.py [vVERSION]
"""

import re
import sys
import tomllib
from pathlib import Path


def first(pattern: str, file: str) -> str:
    """Return the group of the first match in a file."""
    found = re.search(pattern, Path(file).read_text(), re.MULTILINE)
    return found[1] if found else "nothing"


version = tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"]
CHART = "deploy/helm/sluicegate/Chart.yaml"
stated = {
    f"version of {CHART} is": first(r"^version: (\S+)$", CHART),
    f"appVersion of {CHART} is": first(r'^appVersion: "(\S+)"$', CHART),
    "image of compose.yaml is": first(r"^    image: \S*sluicegate:(\S+)$", "compose.yaml"),
}
IMAGE = first(r"^IMAGE=(\S+)$", ".github/identity.env")
for page in (Path("README.md"), *sorted(Path("docs").rglob("*.md"))):
    shown = set(
        re.findall(rf"{re.escape(IMAGE)}:(\d+\.\d+\.\d+\w*)|/charts/sluicegate --version (\S+)", page.read_text())
    )
    stated |= {f"{page} shows": image or chart for image, chart in shown if (image or chart) != version}
if len(sys.argv) > 1:
    stated["the tag is"] = sys.argv[1].removeprefix("refs/tags/").removeprefix("v")
wrong = [f"{place} {other}" for place, other in stated.items() if other != version]
if wrong:
    sys.exit(f"pyproject.toml has version {version}, but " + ", ".join(wrong))
print(version)
