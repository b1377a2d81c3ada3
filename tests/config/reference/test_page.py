"""docs/configuration.md agrees with the model."""

from pathlib import Path

from sluicegate.config.keys import each_key_of
from sluicegate.config.reference.page import page, sections
from sluicegate.config.section import described, section

ROOT = Path(__file__).parents[3]


def test_the_configuration_page_is_generated_from_the_model() -> None:
    written = (ROOT / "docs" / "configuration.md").read_text()

    command = ".venv/bin/python -m sluicegate.config.reference.page > docs/configuration.md"
    assert written == page(), f"regenerate the page: {command}"


def keys_without_description(model: type) -> list[str]:
    """Return a message for each key of a section that has no description."""
    return [
        f"{model.__module__}: {model.__name__}.{key.attribute} has no description for docs/configuration.md; write "
        f'{key.attribute} = described("what it does", default=...)'
        for key in each_key_of(model)
        if not key.description
    ]


def test_every_configuration_key_has_a_description() -> None:
    missing = [words for each in sections() for words in keys_without_description(each.model)]

    assert not missing, "\n".join(missing)


@section
class _Half:
    described: str = described("what it is")
    forgotten: str = "a"


def test_keys_without_description_detects_an_undescribed_key() -> None:
    assert [words.partition(" has no")[0].rpartition(" ")[2] for words in keys_without_description(_Half)] == [
        "_Half.forgotten"
    ]


def test_the_readme_links_to_the_configuration_page() -> None:
    assert "docs/configuration.md" in (ROOT / "README.md").read_text()
