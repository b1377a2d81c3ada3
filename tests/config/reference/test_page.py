"""docs/configuration.md and the model say the same."""

from pathlib import Path

from sluicegate.config.reference.descriptions import KEYS
from sluicegate.config.reference.page import documented_keys, page

ROOT = Path(__file__).parents[3]


def test_the_page_is_the_models() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text()

    assert written == page(), "write it again: python -m sluicegate.config.reference.page > docs/configuration.md"


def test_every_key_is_described_and_none_that_is_gone() -> None:
    described = {key for key in documented_keys() if not key.startswith("defaults.")}

    assert set(KEYS) == described


def test_the_readme_leads_there() -> None:
    assert "docs/configuration.md" in (ROOT / "README.md").read_text()
