"""Compares the locked packages with advisories on disk, without a network: `make audit ADVISORIES=FOLDER`.

The folder is a clone of https://github.com/pypa/advisory-database: OSV records in YAML, by package in vulns/NAME.
Events and version lists follow the OSV schema: https://ossf.github.io/osv-schema/#affectedrangesevents-fields
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version

_LOCKED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)")


def main() -> None:
    """Print the advisories that apply to locked versions. Fails if one applies, or if the folder has none."""
    packages, folder = locked_versions(Path(sys.argv[1])), Path(sys.argv[2])
    looked_at, found = 0, 0
    for name, version in packages:
        for advisory in advisories_about(folder, name):
            looked_at += 1
            if is_affected(advisory, Version(version)):
                found += 1
                print(f"{name} {version}: {advisory['id']} {' '.join(advisory.get('aliases', ()))}")
    if not looked_at:
        sys.exit(
            f"{folder}: no advisories found; the folder must be a clone of https://github.com/pypa/advisory-database"
        )
    print(f"{found} of {looked_at} advisories about {len(packages)} packages apply to the locked versions")
    sys.exit(1 if found else 0)


def locked_versions(requirements: Path) -> list[tuple[str, str]]:
    """Return names, normalised as by PyPI, with their versions. A package may have two, for different Pythons."""
    lines = map(_LOCKED.match, requirements.read_text().splitlines())
    return [(re.sub(r"[-_.]+", "-", line[1]).lower(), line[2]) for line in lines if line]


def advisories_about(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """Return the advisories about a package that were not withdrawn."""
    for file in sorted((folder / "vulns" / name).glob("*.y*ml")):
        advisory = yaml.safe_load(file.read_text())
        if "withdrawn" not in advisory:
            yield advisory


def is_affected(advisory: dict[str, Any], version: Version) -> bool:
    return any(
        version in map(Version, map(str, affected.get("versions", ())))
        or any(_within(span["events"], version) for span in affected.get("ranges", ()) if span["type"] == "ECOSYSTEM")
        for affected in advisory["affected"]
    )


def _within(events: list[dict[str, str]], version: Version) -> bool:
    inside = False
    for event in events:  # the database sorts them by version
        kind, bound = next(iter(event.items()))
        if kind == "introduced":
            inside |= version >= Version(str(bound))
        elif kind == "fixed":
            inside &= version < Version(str(bound))
        elif kind == "last_affected":
            inside &= version <= Version(str(bound))
    return inside


if __name__ == "__main__":
    main()
