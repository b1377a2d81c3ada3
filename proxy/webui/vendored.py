"""Completes a software bill of materials: the web UI's third-party files, and licences that its writer has left out.

`python -m sluicegate.proxy.webui.vendored sbom.cdx.json` changes a CycloneDX file, which scanners read.
"""

import json
import re
import sys
from importlib.metadata import PackageNotFoundError, metadata
from importlib.resources import files
from pathlib import Path
from typing import Any

_ROW = re.compile(
    r"^(?P<file>\S+\.(?:js|css)) +(?P<name>\S+) (?P<version>\S+) +\S+ +(?P<licence>\S+) +(?P<sha256>\w{64})$",
    re.MULTILINE,
)


def components() -> list[dict[str, Any]]:
    """Return the CycloneDX component of each vendored package, from the table in LICENSES.txt."""
    text = files("sluicegate.proxy.webui").joinpath("assets", "vendor", "LICENSES.txt").read_text()
    found: dict[str, dict[str, Any]] = {}
    for row in _ROW.finditer(text):
        purl = f"pkg:npm/{row['name']}@{row['version']}"
        component = found.setdefault(
            purl,
            {
                "bom-ref": purl,
                "type": "library",
                "name": row["name"],
                "version": row["version"],
                "purl": purl,
                "licenses": [{"license": {"id": row["licence"]}}],
                "components": [],
            },
        )
        component["components"].append(
            {
                "bom-ref": f"{purl}#{row['file']}",
                "type": "file",
                "name": f"proxy/webui/assets/vendor/{row['file']}",
                "hashes": [{"alg": "SHA-256", "content": row["sha256"]}],
            }
        )
    return list(found.values())


def add_licence(component: dict[str, Any]) -> None:
    """Add the licence that the metadata of an installed package states, if the component has none."""
    if component.get("licenses"):
        return
    try:
        licence = next(iter(metadata(component["name"]).get_all("License", [])), None)
    except PackageNotFoundError:
        return
    if licence:
        component["licenses"] = [{"license": {"name": licence}}]


def main() -> None:
    """Change the file that the command line names."""
    file = Path(sys.argv[1])
    inventory = json.loads(file.read_text())
    for component in inventory.setdefault("components", []):
        add_licence(component)
    inventory["components"].extend(components())
    file.write_text(json.dumps(inventory, indent=2) + "\n")


if __name__ == "__main__":
    main()
