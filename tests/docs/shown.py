"""What a page shows of a command's output, against what there is."""

import re


def shows(shown: str, there_is: str) -> bool:
    """Whether it is that: `…` stands for any part of a line, a line of `…` alone for any lines. A page shows a part:
    there may be more before and behind.
    """
    lines = [line.rstrip() for line in shown.strip("\n").splitlines()]
    pattern = "".join(r"(?:.*\n)*?" if line == "…" else _of(line) + r"[ \t]*\n" for line in lines)
    return re.search(rf"^{pattern}", there_is.rstrip("\n") + "\n", re.MULTILINE) is not None


def _of(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.split("…"))
