"""Defines paths of sensitive fields, and the actions on these fields."""

import hmac
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import sha256
from typing import Final, Protocol

ANY: Final = "*"
"""The path element that matches any name."""


class Action(Enum):
    """The action on a sensitive field that is not null."""

    MASK = "mask"  # a fixed string replaces it
    HASH = "hash"  # its HMAC-SHA-256 replaces it, as 64 hexadecimal digits
    REJECT = "reject"  # the record is rejected


@dataclass(frozen=True, slots=True)
class FieldPolicy:
    """The operator's policy for some fields.

    - `name`: the name in messages and metrics.
    - `paths`: the fields, each given as the names from the outermost object down.
    - `tags`: tags of fields in a schema.
    - `replacement`: the string for MASK.
    - `key`: the key for HASH.
    """

    name: str
    paths: tuple[tuple[str, ...], ...]
    action: Action
    replacement: str = ""
    key: bytes = field(default=b"", repr=False)
    tags: frozenset[str] = frozenset()

    def __str__(self) -> str:
        paths = ", ".join(".".join(name.replace(".", r"\.") for name in path) for path in self.paths)
        tags = ", ".join(f"tag {tag}" for tag in sorted(self.tags))
        return f"{self.name} ({self.action.value}: {', '.join(filter(None, (paths, tags)))})"

    def replaced(self, pieces: Iterable[bytes]) -> bytes:
        """Return the UTF-8 string that replaces the string in `pieces`. Lone surrogates are hashed unchanged."""
        if self.action is Action.HASH:
            found = hmac.new(self.key, digestmod=sha256)
            for piece in pieces:
                found.update(piece)
            return found.hexdigest().encode()
        return self.replacement.encode("utf-8", "surrogatepass")


class FieldPlace(Protocol):
    """A place in a value.

    - `fields`: the policy if the place is sensitive, otherwise None.
    - `path`: the place's name in messages.
    - `passes_maps`: whether, at this place, the policy applies to each value of a map.
    - `has_nested_places`: whether there may be places below.
    - `longest_name`: the length (characters) of the longest known name. All longer names lead to the same places.
    """

    @property
    def fields(self) -> FieldPolicy | None: ...
    @property
    def path(self) -> tuple[str, ...]: ...
    @property
    def passes_maps(self) -> bool: ...
    @property
    def has_nested_places(self) -> bool: ...
    @property
    def longest_name(self) -> int: ...
    def named(self, name: str, worked: Callable[[int], None]) -> "tuple[FieldPlace, ...]":
        """Return the places of a field or key. `worked` is called with the cost (ns) of finding them."""


class Node:
    """A place on a path in the configuration, or at its end (`FieldPlace`)."""

    __slots__ = ("any_name", "by_name", "fields", "path")

    passes_maps = False

    def __init__(self, path: tuple[str, ...] = ()) -> None:
        self.path = path
        self.by_name: dict[str, Node] = {}
        self.any_name: Node | None = None
        self.fields: FieldPolicy | None = None

    @property
    def has_nested_places(self) -> bool:
        """Return whether a path continues below this place."""
        return bool(self.by_name) or self.any_name is not None

    @property
    def longest_name(self) -> int:
        """Return the length of the longest name (characters)."""
        return max(map(len, self.by_name), default=0)

    def named(self, name: str, _worked: Callable[[int], None]) -> tuple[FieldPlace, ...]:
        """Return the nodes of a field or key."""
        found = (self.by_name.get(name), self.any_name)
        return tuple(node for node in found if node is not None)

    def below(self, name: str) -> "Node":
        """Return the node for a name. Create it if it is missing."""
        if name == ANY:
            self.any_name = self.any_name or Node((*self.path, name))
            return self.any_name
        return self.by_name.setdefault(name, Node((*self.path, name)))


def tree_of(policies: Sequence[FieldPolicy]) -> Node:
    """Return the root of all paths. If two policies have the same path, the first applies."""
    root = Node()
    for fields in policies:
        for path in fields.paths:
            node = root
            for name in path:
                node = node.below(name)
            node.fields = node.fields or fields
    return root


def path_of(text: str) -> tuple[str, ...]:
    r"""Split a path such as `customer.email` into names; `\.` is a dot within a name. Raises ValueError."""
    names, name, is_escaped = [], "", False
    for character in text:
        if is_escaped or (character not in "\\."):
            name, is_escaped = name + character, False
        elif character == "\\":
            is_escaped = True
        else:
            names.append(name)
            name = ""
    names.append(name)
    if is_escaped or not all(names):
        raise ValueError(f"expected names separated by dots, such as customer.email; found {text!r}")
    return tuple(names)
