"""Shows the results as a table, as plain lines, or as JSON for programs."""

import json
from collections import Counter
from collections.abc import Iterator

from sluicegate.config.files.source import printable
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.examination import Examination

_LEVEL_WIDTH = max(len(level.value) for level in Level)
_STYLES = {
    Level.OK: "green",
    Level.NOTE: "cyan",
    Level.WARNING: "yellow",
    Level.FAILURE: "bold red",
    Level.NOT_CHECKED: "magenta",
}


def lines_of(examined: Examination) -> Iterator[str]:
    """Yield a line for each result and each piece of advice, and finally the summary."""
    for result in examined.results:
        yield f"{result.level.value:<{_LEVEL_WIDTH}}  {result.about}: {result.found}"
        if result.advice:
            yield f"{'':<{_LEVEL_WIDTH}}  -> {result.advice}"
    yield summary_of(examined)


def summary_of(examined: Examination) -> str:
    """Return the number of results of each level, and the verdict."""
    counts = Counter(result.level for result in examined.results)
    numbers = ", ".join(f"{counts[level]} {level.value}" for level in Level if counts[level])
    return f"{numbers}: {_VERDICTS[examined.exit_code]}"


_VERDICTS = (
    "no failures",
    "fix the failures before clients connect",
    "no broker responded, so most checks did not run",
)


def draw(examined: Examination) -> None:
    """Print a table on the terminal. Raises ImportError if rich is not installed."""
    from rich.console import Console  # noqa: PLC0415  # an extra
    from rich.table import Table  # noqa: PLC0415  # an extra
    from rich.text import Text  # noqa: PLC0415  # an extra

    table = Table("", "subject", "finding", "remedy", show_lines=True)
    for result in examined.results:
        words = (result.about, result.found, result.advice)
        table.add_row(Text(result.level.value, _STYLES[result.level]), *(Text(printable(word)) for word in words))
    Console().print(table)


def json_of(examined: Examination) -> str:
    """Return a JSON object.

    `level` is `ok`, `note`, `warning`, `failure` or `not checked`. Keys may be added later.
    """
    return json.dumps(
        {
            "exit_code": examined.exit_code,
            "summary": summary_of(examined),
            "findings": [_plain(result) for result in examined.results],
        },
        indent=2,
    )


def _plain(result: CheckResult) -> dict[str, str]:
    return {
        "about": result.about,
        "level": result.level.value,
        "found": result.found,
        "advice": result.advice,
    }
