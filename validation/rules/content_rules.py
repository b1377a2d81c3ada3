"""The registry of rule kinds for keys and values that have a section in the configuration."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from sluicegate.validation.rules.json.syntax import JsonSyntax
from sluicegate.validation.rules.rule import RecordRule, Side


class ContentRule(RecordRule, Protocol):
    """A rule for keys or values. It is created with the side and, as keyword arguments, the keys of its section.

    Any client can send any bytes, so `cost` must be an upper bound of the work that they cause.
    """

    @property
    def is_costly(self) -> bool:
        """Return whether some records need more than INLINE_STEPS.

        Such records are validated in the rules process, where the work can be aborted. If False, all records are
        validated inline, at a cost of at most about 5 ns per byte.
        """


CONTENT_RULES: Final[Mapping[str, Callable[..., ContentRule]]] = {
    "json": JsonSyntax,
}
"""The rule kinds, by their keys in `config/content_keys.py`."""


def content_rule(key: str, side: Side, options: Mapping[str, Any]) -> ContentRule:
    """Return the rule for `key: {...}`. `options` contains the keys of its section."""
    return CONTENT_RULES[key](side, **options)
