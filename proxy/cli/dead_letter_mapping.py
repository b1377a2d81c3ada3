"""The option of `sluicegate dead-letters` that describes the headers of letters without a configuration file."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from sluicegate.config.dead_letter_topics import LetterHeaders
from sluicegate.config.keys import each_key_of

MapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=VALUE",
        help="Read letters of another writer: a field of `dead_letter_topics[]` or of its `headers`, such as "
        "topic=x-original-topic. May be repeated.",
    ),
]
_HEADERS = frozenset(key.name for key in each_key_of(LetterHeaders))


def mapping_of(given: Sequence[str] | None, match: str) -> dict[str, Any] | None:
    """Return the entry of `dead_letter_topics` for the topics `match`; None without the option.

    Several `prefixes` are separated by commas.
    """
    if given is None:
        return None
    entry: dict[str, Any] = {"match": match, "headers": {}}
    for text in given:
        field, separator, value = text.partition("=")
        if not separator:
            raise typer.BadParameter(f"--map: {text} is not FIELD=VALUE")
        if field in _HEADERS:
            entry["headers"][field] = value
        else:
            entry[field] = value.split(",") if field == "prefixes" else value
    return entry
