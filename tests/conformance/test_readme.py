"""The README shows every listed difference."""

import re
from pathlib import Path

from tests.conformance import differences

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_lists_every_difference_in_the_suites_own_words() -> None:
    reasons = [text for name, text in vars(differences).items() if name.isupper() and isinstance(text, str)]
    readme = re.sub(r"\s+", " ", README.read_text()).lower()

    assert len(reasons) == 3
    for reason in reasons:
        assert reason.lower() in readme
