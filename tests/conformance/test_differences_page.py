"""docs/differences.md shows every listed difference."""

import re
from pathlib import Path

from tests.conformance import differences

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"


def test_the_page_lists_every_difference_with_the_same_text() -> None:
    reasons = [text for name, text in vars(differences).items() if name.isupper() and isinstance(text, str)]
    page = re.sub(r"\s+", " ", PAGE.read_text()).lower()

    assert len(reasons) == 5
    for reason in reasons:
        assert reason.lower() in page
