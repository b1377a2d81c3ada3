"""Compares the output that a page shows with the real output."""

import re


def is_shown_in(shown: str, output: str) -> bool:
    """Return whether `output` contains `shown`. `…` matches any part of a line, `…` alone any lines."""
    lines = [line.rstrip() for line in shown.strip("\n").splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else _pattern_of(line) + r"[ \t]*\n" for line in lines)
    return re.search(rf"^{pattern}", output.rstrip("\n") + "\n", re.MULTILINE) is not None


def _pattern_of(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("…"))
