"""Shows what an examination found: as a table, as plain lines, or as JSON for programs."""

import json
from collections import Counter
from collections.abc import Iterator

from sluicegate.config.source import printable
from sluicegate.proxy.doctor.examination import Examined
from sluicegate.proxy.doctor.finding import Finding, Level

_LEVEL_WIDTH = max(len(level.value) for level in Level)
_STYLES = {
    Level.GOOD: "green",
    Level.NOTE: "cyan",
    Level.WARNING: "yellow",
    Level.FAULT: "bold red",
    Level.UNSEEN: "magenta",
}


def lines_of(examined: Examined) -> Iterator[str]:
    """A line for each finding, one more for what is to be done, and a last one that counts."""
    for finding in examined.findings:
        yield f"{finding.level.value:<{_LEVEL_WIDTH}}  {finding.about}: {finding.found}"
        if finding.advice:
            yield f"{'':<{_LEVEL_WIDTH}}  -> {finding.advice}"
    yield summary_of(examined)


def summary_of(examined: Examined) -> str:
    """How many of each kind."""
    counts = Counter(finding.level for finding in examined.findings)
    told = ", ".join(f"{counts[level]} {level.value}" for level in Level if counts[level])
    return f"{told}: {_VERDICTS[examined.exit_code]}"


_VERDICTS = (
    "nothing must be mended",
    "something must be mended before clients can be served",
    "no broker answered, so most could not be looked at",
)


def draw(examined: Examined) -> None:
    """A table on the terminal. Raises ImportError where rich is not installed."""
    from rich.console import Console  # noqa: PLC0415  # an extra
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table("", "what", "found", "what to do", show_lines=True)
    for finding in examined.findings:
        words = (finding.about, finding.found, finding.advice)
        table.add_row(Text(finding.level.value, _STYLES[finding.level]), *(Text(printable(word)) for word in words))
    Console().print(table)


def json_of(examined: Examined) -> str:
    """Keys stay; others may come. `level` is one of `ok`, `note`, `warning`, `mend` and `not seen`."""
    return json.dumps(
        {
            "exit_code": examined.exit_code,
            "summary": summary_of(examined),
            "findings": [_plain(finding) for finding in examined.findings],
        },
        indent=2,
    )


def _plain(finding: Finding) -> dict[str, str]:
    return {
        "about": finding.about,
        "level": finding.level.value,
        "found": finding.found,
        "advice": finding.advice,
    }
