"""What a registry has of a schema."""

from dataclasses import dataclass

from sluicegate.validation.rules.schemas.content import SchemaLanguage


@dataclass(frozen=True, slots=True)
class Reference:
    """A schema that another names: by `name`."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema with all that it names, each of its `references` after what it names itself."""

    language: SchemaLanguage
    text: str
    references: tuple[Reference, ...]

    @property
    def size(self) -> int:
        """Characters of all its texts."""
        return len(self.text) + sum(len(each.name) + len(each.text) for each in self.references)
