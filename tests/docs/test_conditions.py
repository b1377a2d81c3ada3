"""docs/conditions.md equals the text that is generated from the list of conditions."""

from pathlib import Path

from sluicegate.proxy.status.reference import page

PAGE = Path(__file__).parents[2] / "docs" / "conditions.md"


def test_the_conditions_page_is_generated_from_the_catalogue() -> None:
    written = "python -m sluicegate.proxy.status.reference > docs/conditions.md"

    assert PAGE.read_text(encoding="utf-8") == page(), f"regenerate the page: {written}"
