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


def needed_libraries(packages: dict[str, list[dict]], name: str, extra: str | None = None) -> set[str]:
    """Return the names of the libraries that a package needs, directly or not."""
    found: set[str] = set()
    (first,) = packages[name]
    waiting = [*first.get("dependencies", [])] if extra is None else [*first["optional-dependencies"][extra]]
    while waiting:
        entry = waiting.pop()
        if entry["name"] not in found and "win32" not in entry.get("marker", ""):
            found.add(entry["name"])
            waiting += [other for version in packages[entry["name"]] for other in version.get("dependencies", [])]
    return found


def names_for(versions: list[dict], python: str) -> list[str]:
    """Return the wheels of the version that is locked for a Python: a package may have another one from some Python on."""

    def is_for(markers: list[str]) -> bool:
        exact = any(f"python_full_version == '3.{python[1:]}.*'" in marker for marker in markers)
        first = any(f"python_full_version >= '3.{python[1:]}'" in marker for marker in markers)
        before = any(re.search(rf"python_full_version < '3\.{int(python[1:]) + 1}'", marker) for marker in markers)
        return not markers or exact or first or before

    fitting = [version for version in versions if is_for(version.get("resolution-markers", []))]
    return [wheel["url"].rpartition("/")[2] for version in fitting for wheel in version.get("wheels", [])]


def without_wheels(versions: list[dict], platform: str) -> str:
    """Return the supported Pythons without a wheel, in brackets after the package's name; nothing if each has one."""
    lacking = []
    for python in PYTHONS:
        names = names_for(versions, python)
        fitting = [name for name in names if re.search(platform, name)]
        tags = ("-abi3-", "py3-none-", f"-cp{python}-cp{python}-")
        if not any(name.endswith("-none-any.whl") for name in names) and not any(
            tag in name for name in fitting for tag in tags
        ):
            lacking.append(python)
    name = versions[0]["name"]
    if len(lacking) in (0, len(PYTHONS)):
        return name if lacking else ""
    return f"{name} ({', '.join(f'3.{python[1:]}' for python in lacking)})"


def without_free_threading(versions: list[dict]) -> bool:
    """Return whether a package has compiled wheels, and none for Python 3.14 without the global interpreter lock."""
    names = names_for(versions, "314")
    is_pure = any(name.endswith("-none-any.whl") or "-py3-none-" in name for name in names)
    return not is_pure and not any("-cp314t-manylinux" in name and "x86_64" in name for name in names)


lock: dict[str, list[dict]] = {}
for package in tomllib.loads(Path("uv.lock").read_text())["package"]:
    lock.setdefault(package["name"], []).append(package)
core, rules = needed_libraries(lock, "sluicegate"), needed_libraries(lock, "sluicegate", "rules")
rows = [
    "| platform | wheels of sluicegate | libraries without a wheel | libraries of the extra `rules` without a wheel |",
    "|---|---|---|---|",
]
for platform, pattern in PLATFORMS.items():
    missing = sorted(filter(None, (without_wheels(lock[name], pattern) for name in core)))
    of_rules = sorted(filter(None, (without_wheels(lock[name], pattern) for name in rules - core)))
    built = "no" if missing or "Windows" in platform else "yes"
    rows.append(f"| {platform} | {built} | {', '.join(missing) or 'none'} | {', '.join(of_rules) or 'none'} |")
threads = ", ".join(sorted(name for name in core if without_free_threading(lock[name]))) or "none"
text = (
    "`scripts/release/platforms.py` writes this table from the locked libraries, for Python 3.11 to 3.14.\n\n"
    + "\n".join(rows)
    + f"\n\nThese libraries have no wheel for free-threaded Python 3.14 on Linux x86-64: {threads}."
)
page = re.sub(
    r"(<!-- platforms -->\n).*?(\n<!-- /platforms -->)",
    lambda old: f"{old[1]}\n{text}\n{old[2]}",
    PAGE.read_text(),
    flags=re.DOTALL,
)
PAGE.write_text(page)
