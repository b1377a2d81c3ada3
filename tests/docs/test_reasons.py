"""docs/reasons.md lists every reason with a Kafka error and a remedy."""

from pathlib import Path

from sluicegate.proxy.reporting.events.reasons_reference import ENTRIES, page
from sluicegate.validation.verdict import Reason

PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"


def test_the_page_is_generated_from_the_reasons() -> None:
    written = "python -m sluicegate.proxy.reporting.events.reasons_reference > docs/reasons.md"

    assert PAGE.read_text(encoding="utf-8") == page(), f"regenerate the page: {written}"


def test_every_reason_has_an_entry_with_an_error_and_a_remedy() -> None:
    assert list(ENTRIES) == list(Reason)
    assert all(entry.errors and entry.remedy for entry in ENTRIES.values())


def test_every_code_is_the_name_of_its_member_in_lower_case() -> None:
    assert [reason.value for reason in Reason] == [reason.name.lower() for reason in Reason]
