"""A YAML file as plain data plus the line of every key, so that any later error can name its place."""

from dataclasses import dataclass, field
from typing import Any

import yaml

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in the configuration: which key, where it stands, what to do."""

    key: str
    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.key + ': ' if self.key else ''}{self.message}"


@dataclass(slots=True)
class Source:
    """Configuration data and where each path came from (`file:line`, or an environment variable)."""

    name: str
    data: dict[str, Any] = field(default_factory=dict)
    places: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def place_of(self, path: Path) -> str:
        """Where `path`, or the nearest thing around it, stands."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return self.name


def read_yaml(text: str, name: str) -> Source:
    """Read YAML; what is wrong with it is in `problems`, keys given twice included."""
    source = Source(name)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{name}:{mark.line + 1}" if mark is not None else name
        source.problems.append(Problem("", place, f"not YAML: {getattr(error, 'problem', None) or error}"))
        return source
    if root is None:
        return source
    if not isinstance(root, yaml.MappingNode):
        source.problems.append(Problem("", f"{name}:{root.start_mark.line + 1}", "expected keys at the top"))
        return source
    data = _value(root, (), source)
    source.data = data
    return source


def _value(node: yaml.Node, path: Path, source: Source) -> Any:
    if path not in source.places and path:
        source.places[path] = f"{source.name}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, source)
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, (*path, i), source) for i, item in enumerate(node.value)]
    return _scalar(node)


def _mapping(node: yaml.MappingNode, path: Path, source: Source) -> dict[Any, Any]:
    data: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = _scalar(key_node)
        place = f"{source.name}:{key_node.start_mark.line + 1}"
        here = (*path, key)
        if key in data:
            source.problems.append(Problem(dotted(here), place, f"given twice, first at {source.places[here]}"))
            continue
        source.places[here] = place
        data[key] = _value(value_node, here, source)
    return data


def _scalar(node: yaml.Node) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    finally:
        loader.dispose()


def dotted(path: Path) -> str:
    """A path as people read it: `topics[0].match`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text
