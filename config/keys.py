"""Queries the model by path: allowed keys, their types, and whether they are secret."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from sluicegate.config.files.source import Path
from sluicegate.config.section import default_of, is_section
from sluicegate.config.values.password import SecretText
from sluicegate.config.values.quantity import Quantity

_Note = TypeVar("_Note")
_KEYS: dict[type[Any], tuple["Key", ...]] = {}


@dataclass(frozen=True, slots=True)
class Key:
    """A key in the file: its attribute in the section, type annotation, default and description."""

    name: str
    attribute: str
    annotation: Any
    default: Any
    description: str
    former_name: str | None = None
    corrections: Mapping[str, str] = field(default_factory=dict)
    misnomers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_required(self) -> bool:
        """Whether the key is required."""
        return self.default is MISSING


def unwrapped(annotation: Any) -> Any:
    """Return an optional type without None, and an Annotated type without its metadata."""
    while True:
        origin = get_origin(annotation)
        if origin in (Union, UnionType):
            annotation = next(a for a in get_args(annotation) if a is not type(None))
        elif origin is Annotated:
            annotation = get_args(annotation)[0]
        else:
            return annotation


def note_of(annotation: Any, kind: type[_Note]) -> _Note | None:
    """Return the first note of type `kind` in an annotation, which may be optional; None if it has no such note."""
    places = [getattr(part, "__metadata__", ()) for part in (annotation, *get_args(annotation))]
    return next((note for notes in places for note in notes if isinstance(note, kind)), None)


def takes_none(annotation: Any) -> bool:
    """Return whether this is an optional number. For these, the word `none` has the same effect as a missing key."""
    quantity = note_of(annotation, Quantity)
    return is_optional(annotation) and quantity is not None and quantity.none is None


def is_optional(annotation: Any) -> bool:
    """Return whether the annotation allows None."""
    return get_origin(annotation) in (Union, UnionType) and type(None) in get_args(annotation)


def section_of(annotation: Any) -> type[Any] | None:
    """Return an annotation's section class, or None for anything else."""
    kind = unwrapped(annotation)
    return kind if isinstance(kind, type) and is_section(kind) else None


def each_key_of(section: type[Any]) -> tuple[Key, ...]:
    """Return a section's keys, in order."""
    if section not in _KEYS:
        hints = get_type_hints(section, include_extras=True)
        _KEYS[section] = tuple(
            Key(
                each.metadata.get("alias", each.name),
                each.name,
                hints[each.name],
                default_of(each),
                each.metadata.get("description", ""),
                each.metadata.get("formerly"),
                each.metadata.get("corrections", {}),
                each.metadata.get("misnomers", {}),
            )
            for each in fields(section)
        )
    return _KEYS[section]


def keys_of(section: type[Any]) -> Mapping[str, Any]:
    """Return the annotations of a section's keys, by their names in the file."""
    return {key.name: key.annotation for key in each_key_of(section)}


def renamed(section: type[Any], word: str) -> str | None:
    """Return the current name of the key that was formerly called `word`, or None."""
    return next((key.name for key in each_key_of(section) if key.former_name == word), None)


def item_of(annotation: Any) -> Any:
    """Return the item type of a list or mapping, or None for other types."""
    kind = unwrapped(annotation)
    if get_origin(kind) is tuple:
        return get_args(kind)[0]
    return get_args(kind)[1] if get_origin(kind) is dict else None


def is_list(annotation: Any) -> bool:
    """Return whether the annotation is that of a list."""
    return get_origin(unwrapped(annotation)) is tuple


def annotation_at(root: type[Any], path: Path) -> Any:
    """Return the annotation of `path`, or None if the model has no such path."""
    annotation: Any = root
    for part in path:
        section = section_of(annotation)
        annotation = item_of(annotation) if section is None else keys_of(section).get(str(part))
    return annotation


def key_at(root: type[Any], path: Path) -> Key | None:
    """Return the key of `path`, or of the list or mapping that contains it. Return None for unknown paths."""
    found: Key | None = None
    annotation: Any = root
    for part in path:
        section = section_of(annotation)
        if section is None:
            annotation = item_of(annotation)
            continue
        found = next((key for key in each_key_of(section) if key.name == part), None)
        if found is None:
            return None
        annotation = found.annotation
    return found if annotation is not None else None


def holds_secret(annotation: Any) -> bool:
    """Return whether the type is or contains a secret. An unknown type counts as secret."""
    section = section_of(annotation)
    if section is not None:
        return any(holds_secret(kind) for kind in keys_of(section).values())
    item = item_of(annotation)
    return holds_secret(item) if item is not None else annotation is None or unwrapped(annotation) is SecretText
