"""Reads a configuration file as plain data with the line of every key, so that later errors can name the place.

Values are strings, as written. The model decides how to parse them, so a password that looks like a number or a date
stays unchanged. An empty value (`key:`, `~`, `null`) is None.
"""

from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

import yaml

from sluicegate.config.disk.regular_file import read_file as read_regular
from sluicegate.config.files.near_files import near_files
from sluicegate.config.files.source import MAX_BYTES, Problem, Source, digest_of, dotted
from sluicegate.config.files.yaml_errors import line_of, tab_before, words_of
from sluicegate.config.files.yaml_nodes import BadNode, Reader, text_of

_BYTE_ORDER_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


def read_file(path: FilePath, scalar: Callable[[yaml.ScalarNode], Any] = text_of) -> Source:
    """Read a YAML file. `scalar` converts its scalars. The result's `problems` include errors from reading the file."""
    name = str(path)
    try:
        content = read_regular(path, MAX_BYTES)
    except (OSError, ValueError) as error:  # ValueError: the path is not a valid file name
        near = near_files(path) if isinstance(error, FileNotFoundError) else ""
        return _unreadable(name, f"cannot be read: {getattr(error, 'strerror', None) or error}{near}")
    source = read_content(content, name, scalar)
    source.digests[path] = digest_of(content)
    return source


def read_content(content: bytes, name: str, scalar: Callable[[yaml.ScalarNode], Any] = text_of) -> Source:
    """Parse the content of the file `name`, like `read_file`."""
    if len(content) > MAX_BYTES:
        return _unreadable(name, f"more than {MAX_BYTES >> 20} MiB: not a configuration file")
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return _unreadable(name, f"cannot be read: it is {encoding}; save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return _unreadable(f"{name}:{line}", "cannot be read: not UTF-8; save it as UTF-8")
    source = read_yaml(text, name, scalar)
    source.content = content
    return source


def read_yaml(text: str, name: str, scalar: Callable[[yaml.ScalarNode], Any] = text_of) -> Source:
    """Parse YAML. `scalar` converts its scalars. The result's `problems` list errors, including duplicate keys."""
    source = Source(name)
    try:
        root = compose(text)
        if root is None:
            return source
        if not isinstance(root, yaml.MappingNode):
            return _unreadable(
                f"{name}:{root.start_mark.line + 1}", "expected keys at the top level, such as `upstream:`"
            )
        reader = Reader(lambda path, line: source.places.setdefault(path, f"{name}:{line}"), scalar)
        source.data = reader.value(root, ())
    except BadNode as error:
        return _unreadable(f"{name}:{error.line}", str(error))
    except yaml.YAMLError as error:
        tab = tab_before(error, text)
        if tab is not None:
            return _unreadable(f"{name}:{tab}", f"not YAML: line {tab} is indented with a tab; indent with spaces")
        line = line_of(error, text)
        return _unreadable(f"{name}:{line}" if line else name, f"not YAML: {words_of(error)}")
    except RecursionError:
        return _unreadable(name, "the YAML is nested too deeply")
    except (ValueError, OverflowError):  # PyYAML raises these for "\UFFFFFFFF"
        return _unreadable(name, "not YAML: an escape \\U is not a valid character")
    for path, line in reader.twice:
        first = source.places[path]
        source.problems.append(Problem(dotted(path), f"{name}:{line}", f"duplicate key, first at {first}"))
    return source


def compose(text: str) -> yaml.Node | None:
    """Return the YAML nodes of `text`, with plain scalars unresolved.

    Raises yaml.YAMLError, RecursionError and ValueError.
    """
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.BaseLoader)
    return node


def _unreadable(place: str, message: str) -> Source:
    return Source(place, problems=[Problem("", place, message)], readable=False)
