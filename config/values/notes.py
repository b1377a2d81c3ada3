"""Notes on kinds of values, beside pydantic's own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamesFile:
    """The text names a file to be read. A relative name begins at the folder of the file that it stands in."""
