"""An option of the command line that is a key of the configuration."""

from dataclasses import dataclass

from sluicegate.config.source import Path


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the command line that goes before the file and the environment."""

    name: str
    path: Path
    value: str
