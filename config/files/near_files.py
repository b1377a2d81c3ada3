"""Finds the files that a mistyped path may have meant."""

import os
from itertools import islice
from pathlib import Path

from sluicegate.config.disk.deadline import within_deadline
from sluicegate.config.values.near_names import did_you_mean

_MOST_COMPARED = 20_000


def near_files(path: Path) -> str:
    """Return `; did you mean a.yaml?` with similarly named files from the same folder, or an empty string.

    Blocks for at most five seconds.
    """
    try:
        names = within_deadline((path, "near files"), lambda: _names_in(path.parent))
    except OSError:
        return ""
    return did_you_mean(path.name, names)


def _names_in(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return sorted(entry.name for entry in islice(entries, _MOST_COMPARED) if not entry.name.startswith("."))
