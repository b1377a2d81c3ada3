"""How commands are told where their tables are kept."""

from typing import Annotated

import typer

from sluicegate.pipeline.running import end
from sluicegate.pipeline.tables.formats import BadTables, Kept, TableFormat, format_named, kept_at, kept_in

TablesAt = Annotated[
    str | None,
    typer.Option(
        "--tables",
        metavar="DIR",
        help="Keep tables here from run to run: a folder, or for Iceberg catalog:NAME.NAMESPACE.",
    ),
]
Format = Annotated[
    str | None, typer.Option("--format", metavar="FORMAT", help="Of these tables: parquet (default), delta or iceberg.")
]


def kept_of(tables: str | None, form: str | None) -> Kept | None:
    """What a command line says; what cannot be ends the command."""
    try:
        return kept_in(tables, form)
    except BadTables as error:
        end(str(error))


def kept_in_or(out: str, tables: str | None, form: str | None) -> Kept:
    """The same of a job that always keeps tables: in `out`, where nothing else is said."""
    try:
        return kept_at(tables or out, format_named(form or TableFormat.PARQUET))
    except BadTables as error:
        end(str(error))
