"""Completes a software bill of materials: the web UI's third-party files, and missing licences.

`python -m sluicegate.proxy.webui.vendored sbom.cdx.json` changes a CycloneDX file, which scanners read.
"""

import json
import re
import sys
from contextlib import suppress
from email.message import Message
from importlib.metadata import PackageNotFoundError, metadata
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

_LONGEST_NAME = 100
_ROW = re.compile(
    r"^(?P<file>\S+\.(?:js|css)) +(?P<name>\S+) (?P<version>\S+) +\S+ +(?P<licence>\S+) +(?P<sha256>\w{64})$",
    re.MULTILINE,
)


def components() -> list[dict[str, Any]]:
    """Return each vendored package's CycloneDX component, from the table in LICENSES.txt."""
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


def licence_of(package: Message) -> dict[str, Any] | None:
    """Return the licence that a package's metadata name (PEP 639, or the older fields), or None.

    The older field `License` may contain a whole licence text without a name. Then the classifier names the licence.
    """
    if expression := package.get("License-Expression"):
        return {"expression": expression}
    name = package.get("License", "")
    if not name or "\n" in name or len(name) > _LONGEST_NAME:
        classifiers = [each for each in package.get_all("Classifier", []) if each.startswith("License :: ")]
        name = " or ".join(each.rpartition(" :: ")[2] for each in classifiers)
    return {"license": {"name": name}} if name else None


def add_licence(component: dict[str, Any]) -> None:
    """Add the licence that an installed package's metadata name, if the component has none."""
    if component.get("licenses"):
        return
    with suppress(PackageNotFoundError):
        if licence := licence_of(cast("Message", metadata(component["name"]))):
            component["licenses"] = [licence]


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
