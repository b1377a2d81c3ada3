#!/usr/bin/env python3
"""Writes the table of platforms in docs/compatibility.md: which locked libraries of the proxy have no wheel for one.

scripts/release/platforms.py
"""

import re
import tomllib
from pathlib import Path

PAGE = Path("docs/compatibility.md")
PLATFORMS = {
    "Linux x86-64, glibc 2.28 or later": r"manylinux\S*x86_64",
    "Linux aarch64, glibc 2.28 or later": r"manylinux\S*aarch64",
    "macOS arm64": r"macosx\S*(arm64|universal2)",
    "macOS Intel": r"macosx\S*(x86_64|universal2)",
    "Linux x86-64, musl (Alpine)": r"musllinux\S*x86_64",
    "Linux aarch64, musl (Alpine)": r"musllinux\S*aarch64",
    "Windows x86-64": r"win_amd64",
}
PYTHONS = ("311", "312", "313", "314")


def needed(packages: dict[str, dict], name: str, extra: str | None = None) -> set[str]:
    """Return the names of the libraries that a package needs, directly or not."""
    found: set[str] = set()
    first = packages[name]
    waiting = [*first.get("dependencies", [])] if extra is None else [*first["optional-dependencies"][extra]]
    while waiting:
        entry = waiting.pop()
        if entry["name"] not in found and "win32" not in entry.get("marker", ""):
            found.add(entry["name"])
            waiting += packages[entry["name"]].get("dependencies", [])
    return found


def without_wheels(package: dict, platform: str) -> str:
    """Return the supported Pythons that get no wheel, in brackets after the package's name; nothing if there is none."""
    names = [wheel["url"].rpartition("/")[2] for wheel in package.get("wheels", [])]
    if any(name.endswith("-none-any.whl") for name in names):
        return ""
    fitting = [name for name in names if re.search(platform, name)]
    for_all = any("-abi3-" in name or "py3-none-" in name for name in fitting)
    lacking = [
        python for python in PYTHONS if not for_all and not any(f"-cp{python}-cp{python}-" in name for name in fitting)
    ]
    if len(lacking) in (0, len(PYTHONS)):
        return package["name"] if lacking else ""
    return f"{package['name']} ({', '.join(f'3.{python[1:]}' for python in lacking)})"


lock = {package["name"]: package for package in tomllib.loads(Path("uv.lock").read_text())["package"]}
core, rules = needed(lock, "sluicegate"), needed(lock, "sluicegate", "rules")
rows = ["| platform | wheels of sluicegate | libraries without a wheel | of the extra `rules` |", "|---|---|---|---|"]
for platform, pattern in PLATFORMS.items():
    missing = sorted(filter(None, (without_wheels(lock[name], pattern) for name in core)))
    of_rules = sorted(filter(None, (without_wheels(lock[name], pattern) for name in rules - core)))
    built = "no" if missing or "Windows" in platform else "yes"
    rows.append(f"| {platform} | {built} | {', '.join(missing) or 'none'} | {', '.join(of_rules) or 'none'} |")
text = "Written by `scripts/release/platforms.py` from the locked libraries, Python 3.11 to 3.14.\n\n" + "\n".join(rows)
page = re.sub(
    r"(<!-- platforms -->\n).*?(\n<!-- /platforms -->)",
    lambda old: f"{old[1]}\n{text}\n{old[2]}",
    PAGE.read_text(),
    flags=re.DOTALL,
)
PAGE.write_text(page)
