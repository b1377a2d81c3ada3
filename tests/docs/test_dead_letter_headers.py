"""docs/bad-records.md lists exactly the headers of dead letters that the proxy writes and a replay reads."""

import re
from pathlib import Path

from sluicegate.validation.dispositions.quarantine import DeadLetterHeader

PAGE = Path(__file__).parents[2] / "docs" / "bad-records.md"
_CELL = re.compile(r"^\| ((?:`sluicegate\.[a-z.]+`(?:, )?)+) \|", re.MULTILINE)


def test_the_page_lists_the_headers_of_dead_letters() -> None:
    cells = _CELL.findall(PAGE.read_text(encoding="utf-8"))
    listed = {name for cell in cells for name in re.findall(r"`([a-z.]+)`", cell)}

    assert listed == {header.value for header in DeadLetterHeader}
