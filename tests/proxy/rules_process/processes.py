"""The child processes of a rules process are found in Linux's /proc."""

from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Return the running child processes of all its threads."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for children in tasks for child in children.read_text().split()]


def is_alive(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
