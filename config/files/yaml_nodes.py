"""Converts YAML nodes to dicts, lists and strings. Rejects everything that a configuration must not contain."""

from collections.abc import Callable, Collection
from typing import Any

import yaml

Path = tuple[str | int, ...]
_STANDARD = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({"!", *(_STANDARD + kind for kind in ("str", "int", "float", "bool", "null"))})
_MAPPING_TAGS = frozenset({"!", _STANDARD + "map"})
_SEQUENCE_TAGS = frozenset({"!", _STANDARD + "seq"})
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
_MERGE = "<<"
# Aliases of aliases multiply the number of values.
_MAX_VALUES = 200_000


class BadNode(Exception):
    """Raised for YAML that a configuration must not contain. The message never quotes it."""

    def __init__(self, node: yaml.Node, message: str) -> None:
        super().__init__(message)
        self.line = node.start_mark.line + 1


def text_of(node: yaml.ScalarNode) -> str | None:
    """Return a scalar as written, or None for an empty one (`key:`, `~`, `null`). Raises BadNode."""
    check_tag(node, _TEXT_TAGS)
    is_nothing = node.tag == _STANDARD + "null" or (node.style is None and node.value in _NOTHING)
    return None if is_nothing and node.tag != "!" else str(node.value)


def check_tag(node: yaml.Node, known: Collection[str]) -> None:
    """Raise BadNode for a tag that is not in `known`."""
    if node.tag not in known:
        raise BadNode(
            node, "tags (!…) are not supported: a value that begins with ! needs quotes; secrets can be read from files"
        )


class Reader:
    """A converter of nodes to values.

    It reports the line of each path to `note`, and collects duplicate keys in `twice`. `scalar` converts a scalar.
    """

    def __init__(self, note: Callable[[Path, int], object], scalar: Callable[[yaml.ScalarNode], Any] = text_of) -> None:
        self._note = note
        self._scalar = scalar
        self._around: list[yaml.Node] = []
        self._values = 0
        self.twice: list[tuple[Path, int]] = []

    def value(self, node: yaml.Node, path: Path) -> Any:
        """Return the value of a node. Raises BadNode and RecursionError."""
        self._values += 1
        if self._values > _MAX_VALUES:
            raise BadNode(node, f"more than {_MAX_VALUES} values: aliases (*) multiply them")
        if path:
            self._note(path, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if any(outer is node for outer in self._around):
            raise BadNode(node, "an alias (*) refers to a node that contains it")
        self._around.append(node)
        value = self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._list(node, path)
        self._around.pop()
        return value

    def _list(self, node: yaml.Node, path: Path) -> list[Any]:
        check_tag(node, _SEQUENCE_TAGS)
        return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        check_tag(node, _MAPPING_TAGS)
        data: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key_node, value_node in node.value:
            key = _key(key_node)
            here = (*path, key)
            if key == _MERGE and key_node.style is None:
                merged.append(value_node)
            elif key in data:
                self.twice.append((here, key_node.start_mark.line + 1))
            else:
                self._note(here, key_node.start_mark.line + 1)
                data[key] = self.value(value_node, here)
        for value_node in merged:
            self._merge(value_node, path, data)
        return data

    def _merge(self, node: yaml.Node, path: Path, data: dict[str, Any]) -> None:
        """Add the keys from `<<: *anchor` or `<<: [*one, *other]` that `data` does not contain (YAML's merge type)."""
        for each in node.value if isinstance(node, yaml.SequenceNode) else [node]:
            if not isinstance(each, yaml.MappingNode):
                raise BadNode(each, "<< takes the keys of another section: <<: *name")
            for key, value in self.value(each, path).items():
                data.setdefault(key, value)


def _key(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        raise BadNode(node, "was a template {{ … }} not filled in? A value that begins with { needs quotes")
    if not isinstance(node, yaml.ScalarNode):
        raise BadNode(node, "a list cannot be a key; a value that begins with [ needs quotes")
    check_tag(node, _TEXT_TAGS)
    return str(node.value)
