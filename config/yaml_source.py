"""A configuration file as plain data plus the line of every key, so that any later error can name its place.

Values are text, as written: what the model wants there decides how a text is read, so a password that looks like a
number or a date stays what it is. Nothing (`key:`, `~`, `null`) is None.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import yaml

from sluicegate.config.yaml_nodes import BadNode, Reader
from sluicegate.config.yaml_words import line_of, words_of

Path = tuple[str | int, ...]
_MAX_BYTES = 16 << 20
_MAX_LINE = 600
_BYTE_ORDER_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in the configuration: which key, where it stands, what to do."""

    key: str
    place: str
    message: str

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.key + ': ' if self.key else ''}{self.message}")


@dataclass(slots=True)
class Source:
    """Configuration data and where each path came from (`file:line`, an environment variable, an option).

    `readable`: whether there was anything to go by; if not, `problems` says why and nothing else is worth saying.
    `remarks`: what can be used and is still worth a word. `digests`: SHA-256 of what each file held that was read.
    `elsewhere`: from an item that another file holds to what it is called there.
    """

    name: str
    data: dict[str, Any] = field(default_factory=dict, repr=False)
    places: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    readable: bool = True
    remarks: list[str] = field(default_factory=list)
    digests: dict[FilePath, bytes] = field(default_factory=dict)
    elsewhere: dict[Path, Path] = field(default_factory=dict)

    def place_of(self, path: Path) -> str:
        """Where `path`, or the nearest thing around it, stands."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return self.name

    def key_of(self, path: Path) -> str:
        """What people call `path` in the file that it stands in: `topics[0].match`."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.elsewhere:
                return dotted((*self.elsewhere[path[:length]], *path[length:]))
        return dotted(path)


def read_file(path: FilePath) -> Source:
    """Read a YAML file; whatever keeps it from being read is in `problems`."""
    name = str(path)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: no file can have this name
        return _unreadable(name, f"cannot be read: {getattr(error, 'strerror', None) or error}")
    source = _read_content(content, name)
    source.digests[path] = _digest_of(content)
    return source


def digest_of_file(path: FilePath) -> bytes | None:
    """What `Source.digests` would hold for a file as it is now; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return _digest_of(file.read(_MAX_BYTES + 1))
    except (OSError, ValueError):
        return None


def _digest_of(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()


def _read_content(content: bytes, name: str) -> Source:
    if len(content) > _MAX_BYTES:
        return _unreadable(name, f"more than {_MAX_BYTES >> 20} MiB: this is no configuration file")
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return _unreadable(name, f"cannot be read: it is {encoding}; save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return _unreadable(f"{name}:{line}", "cannot be read: not UTF-8; save it as UTF-8")
    return read_yaml(text, name)


def read_yaml(text: str, name: str) -> Source:
    """Read YAML; what is wrong with it is in `problems`, keys given twice included."""
    source = Source(name)
    try:
        root = compose(text)
        if root is None:
            return source
        if not isinstance(root, yaml.MappingNode):
            return _unreadable(f"{name}:{root.start_mark.line + 1}", "expected keys at the top, as `upstream:`")
        reader = Reader(lambda path, line: source.places.setdefault(path, f"{name}:{line}"))
        source.data = reader.value(root, ())
    except BadNode as error:
        return _unreadable(f"{name}:{error.line}", str(error))
    except yaml.YAMLError as error:
        line = line_of(error, text)
        return _unreadable(f"{name}:{line}" if line else name, f"not YAML: {words_of(error)}")
    except RecursionError:
        return _unreadable(name, "not YAML that can be read: nested too deeply")
    except (ValueError, OverflowError):  # PyYAML's own, for "\UFFFFFFFF"
        return _unreadable(name, "not YAML: a \\U in it stands for no character")
    for path, line in reader.twice:
        first = source.places[path]
        source.problems.append(Problem(dotted(path), f"{name}:{line}", f"given twice, first at {first}"))
    return source


def compose(text: str) -> yaml.Node | None:
    """The nodes of a text, plain scalars left as they are. Raises yaml.YAMLError, RecursionError and ValueError."""
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.BaseLoader)
    return node


def _unreadable(place: str, message: str) -> Source:
    return Source(place, problems=[Problem("", place, message)], readable=False)


def dotted(path: Path) -> str:
    """A path as people read it: `topics[0].match`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def printable(text: str) -> str:
    """One line that a terminal shows as it is, whatever a file had in it."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[:_MAX_LINE])
    return shown if len(text) <= _MAX_LINE else f"{shown}…"
