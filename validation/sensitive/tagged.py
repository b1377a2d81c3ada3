"""Represents the places of fields that a schema tags."""

from collections.abc import Callable, Iterable, Sequence

from sluicegate.validation.sensitive.paths import FieldPlace, FieldPolicy


def policy_of(tags: Iterable[str], policies: Sequence[FieldPolicy]) -> FieldPolicy | None:
    """Return the first policy for one of these tags, or None."""
    found = frozenset(tags)
    return next((each for each in policies if found & each.tags), None)


class TaggedPlace:
    """A place that a schema tags (`FieldPlace`)."""

    passes_maps = True
    has_nested_places = False
    longest_name = 0

    def __init__(self, path: tuple[str, ...], fields: FieldPolicy) -> None:
        self.path = path
        self.fields: FieldPolicy | None = fields

    def named(self, _name: str, _worked: Callable[[int], None]) -> tuple[FieldPlace, ...]:
        """Return nothing, because a tag applies to a single field."""
        return ()
