"""The options of `sluicegate dead-letters` for repairs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluicegate.proxy.cli.console import end
from sluicegate.proxy.cli.dead_letter_access import USAGE

if TYPE_CHECKING:
    from sluicegate.dead_letters.repairs import LetterRepair

PatchOption = Annotated[
    Path | None,
    typer.Option("--patch", metavar="FILE", help="Apply this JSON Patch (RFC 6902) to values in JSON."),
]
FunctionOption = Annotated[
    str | None,
    typer.Option("--repair", metavar="FILE:FUNCTION", help="Repair records with this Python function."),
]
SchemaIdOption = Annotated[
    int | None,
    typer.Option("--schema-id", metavar="ID", help="Replace the schema id at the beginning of values."),
]


def repairs_of(patch: Path | None, function: str | None, schema_id: int | None) -> "tuple[LetterRepair, ...]":
    """Return the repairs in the order in which they are applied. An option that cannot be used ends the command."""
    from sluicegate.dead_letters.function_repair import read_function
    from sluicegate.dead_letters.value_repairs import BadRepair, read_patch, schema_id_of

    found: list[LetterRepair] = []
    try:
        if patch is not None:
            found.append(read_patch(patch))
        if function is not None:
            found.append(read_function(function))
        if schema_id is not None:
            found.append(schema_id_of(schema_id))
    except BadRepair as error:
        end([f"sluicegate dead-letters: {error}"], USAGE)
    return tuple(found)
