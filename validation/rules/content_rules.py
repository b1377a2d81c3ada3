"""The kinds of rules about a key or a value that have a section in the configuration. Each is registered here."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.rule import Rule, Side


class ContentRule(Rule, Protocol):
    """A rule about a key or a value. It is made of the side and, by their names, of the keys of its section.

    Any client can send any bytes: `steps` is an upper bound of the work that they cause.
    """

    @property
    def is_costly(self) -> bool:
        """Whether some records take it more than INLINE_STEPS. These are validated in the rules process, where they can
        be stopped. If False, all records are validated where they come, at most about 5 ns for each byte.
        """


CONTENT_RULES: Final[Mapping[str, Callable[..., ContentRule]]] = {
    "json": JsonSyntax,
}
"""By their key in `config/content_keys.py`."""


def content_rule(key: str, side: Side, options: Mapping[str, Any]) -> ContentRule:
    """Make the rule that `key: {...}` asks for; `options`: its section's keys."""
    return CONTENT_RULES[key](side, **options)
