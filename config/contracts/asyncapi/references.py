"""Follows `$ref` inside an AsyncAPI document, and to files in and below its folder. Reads nothing from a network."""

import posixpath
import re
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any, Final
from urllib.parse import unquote

from sluicegate.config.contracts.asyncapi.nodes import DocumentNode, Refused
from sluicegate.config.files.source import Source

Read = Callable[[FilePath], Source]
"""Returns the content of a YAML or JSON file. Its `problems` include errors from reading the file."""
ReadText = Callable[[FilePath], bytes]
"""Returns the content of any file. Raises OSError."""

REF: Final = "$ref"
_MOST_STEPS = 50
_MOST_STEPS_OF_ALL = 200_000
_MOST_FILES = 100
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class References:
    """The document `root`, read from `file`, and the files to which it refers.

    `read` and `read_text` read files. They are None if the document has no folder; every reference to a file is then an
    error. `real_path` resolves symbolic links.
    """

    def __init__(
        self,
        root: Source,
        file: FilePath,
        read: Read | None = None,
        read_text: ReadText | None = None,
        real_path: Callable[[FilePath], FilePath] = FilePath,
    ) -> None:
        self._root = root
        self._folder = file.parent
        self._read = read
        self._read_text = read_text
        self._real_path = real_path
        self._names: dict[int, str] = {id(root): file.name}
        self._sources: dict[str, Source] = {file.name: root}
        self._texts: dict[FilePath, str] = {}
        self._left = _MOST_STEPS_OF_ALL

    @property
    def root(self) -> DocumentNode:
        """Return the document as a whole."""
        return DocumentNode(self._root.data, self._root)

    def resolved(self, node: DocumentNode) -> DocumentNode:
        """Return the target of a node that is a reference, or else the node itself. Raises Refused."""
        for _ in range(_MOST_STEPS):
            target = reference_in(node)
            if target is None:
                return node
            node = self._target(node, target)
        raise Refused(node, f"a chain of more than {_MOST_STEPS} references")

    def get(self, node: DocumentNode, key: str) -> DocumentNode | None:
        """Return a key's value with references resolved, or None if it is missing or null. Raises Refused."""
        found = self.resolved(node).get(key)
        return None if found is None else self.resolved(found)

    def items(self, node: DocumentNode | None) -> "list[tuple[str, DocumentNode]]":
        """Return a mapping's keys and values, with references resolved. Raises Refused."""
        return [] if node is None else [(key, self.resolved(value)) for key, value in self.resolved(node).items()]

    def file_of(self, node: DocumentNode) -> FilePath | None:
        """Return the file that a reference without a fragment names, or None for any other node. Raises Refused."""
        target = reference_in(node)
        if target is None or target.startswith("#") or "#" in target.rstrip("#"):
            return None
        return self._path_of(node, self._name_of(node, target.rstrip("#")))

    def text_of(self, node: DocumentNode, file: FilePath) -> str:
        """Return the content of a file that the node names. Raises Refused."""
        known = self._texts.get(file)
        if known is not None:
            return known
        self._count_file(node)
        assert self._read_text is not None
        try:
            text = self._texts[file] = self._read_text(file).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Refused(node, f"{file} is not UTF-8") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Refused(node, f"{file} cannot be read: {reason}") from None
        return text

    def _count_file(self, node: DocumentNode) -> None:
        if len(self._sources) + len(self._texts) > _MOST_FILES:
            raise Refused(node, f"the document refers to more than {_MOST_FILES} files")

    def _target(self, node: DocumentNode, target: str, depth: int = 0) -> DocumentNode:
        self._left -= 1
        if depth > _MOST_STEPS or self._left < 0:
            raise Refused(node, f"{target[:200]} resolves through too many references")
        name, _, fragment = target.partition("#")
        source = node.source if not name else self._source(node, self._name_of(node, name))
        found = DocumentNode(source.data, source)
        if fragment and not fragment.startswith("/"):
            raise Refused(node, f"{target[:200]} is not a JSON pointer; write #/components/…")
        for part in fragment.split("/")[1:]:
            found = self._step(node, target, found, unquote(part).replace("~1", "/").replace("~0", "~"), depth)
        return found

    def _step(self, node: DocumentNode, target: str, found: DocumentNode, part: str, depth: int) -> DocumentNode:
        for _ in range(_MOST_STEPS):
            inner = reference_in(found)
            if inner is None or part in found.value:
                break
            found = self._target(found, inner, depth + 1)
        value = found.value
        if isinstance(value, dict) and part in value:
            return found.at(part)
        if (
            isinstance(value, list)
            and part.isdecimal()
            and len(part) <= len(str(len(value)))
            and int(part) < len(value)
        ):
            return found.at(int(part))
        raise Refused(node, f"{target[:200]} cannot be resolved: there is no {part[:100]}")

    def _name_of(self, node: DocumentNode, name: str) -> str:
        """Return the name of a file, relative to the document's folder. Raises Refused."""
        name = unquote(name)
        if name.startswith("//") or _SCHEME.match(name):
            raise Refused(node, f"{name[:200]} is not read from the network; save it beside the document")
        if self._read is None:
            raise Refused(node, f"{name[:200]} is another file, and this document has no folder")
        around = posixpath.dirname(self._names[id(node.source)])
        path = posixpath.normpath(posixpath.join(around, name))
        if "\0" in name or "\\" in name or posixpath.isabs(path) or path.split("/")[0] == "..":
            raise Refused(node, f"{name[:200]} is outside the document's folder; only files in it and below are read")
        return path

    def _path_of(self, node: DocumentNode, name: str) -> FilePath:
        path = self._folder / name
        try:
            is_inside = self._real_path(path).is_relative_to(self._real_path(self._folder))
        except (OSError, ValueError) as error:
            raise Refused(node, f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
        if not is_inside:
            raise Refused(node, f"{name[:200]} is a link to a file outside the document's folder")
        return path

    def _source(self, node: DocumentNode, name: str) -> Source:
        known = self._sources.get(name)
        if known is not None:
            return known
        self._count_file(node)
        assert self._read is not None
        source = self._read(self._path_of(node, name))
        if source.problems:
            raise Refused(node, f"{name[:200]}: {source.problems[0]}")
        self._names[id(source)] = name
        self._sources[name] = source
        return source


def reference_in(node: DocumentNode) -> str | None:
    """Return a reference's target, or None if the node is not a reference."""
    value: Any = node.value
    target = value.get(REF) if isinstance(value, dict) else None
    return target if isinstance(target, str) else None
