"""docs/commands.md agrees with the help of the commands."""

from sluicegate.proxy.cli.commands_reference import page
from tests.oracle.kafka_java import ROOT


def test_the_commands_page_is_generated_from_the_help_texts() -> None:
    written = (ROOT / "docs" / "commands.md").read_text()

    assert written == page(), "run .venv/bin/python -m sluicegate.proxy.cli.commands_reference > docs/commands.md"
    assert "--timestamp" in written
