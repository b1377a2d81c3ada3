"""A text that is not shown."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SecretText:
    """A password as a file gave it; whoever prints it, or what holds it, sees none of it."""

    _text: str = field(repr=False)

    def get_secret_value(self) -> str:
        """The text itself."""
        return self._text

    def __str__(self) -> str:
        return "**********"
