"""Reads the files to which AsyncAPI documents refer, and keeps them with the configuration.

While a file is missing or unreadable, its last content is used, as for contracts.
"""

from functools import partial
from pathlib import Path as FilePath

from sluicegate.config.contracts.asyncapi.references import References
from sluicegate.config.contracts.asyncapi.scalars import json_value_of
from sluicegate.config.disk.regular_file import read_file, real_path
from sluicegate.config.files.source import MAX_BYTES, Problem, Source, digest_of
from sluicegate.config.files.yaml_source import read_content


def references_of(source: Source, root: Source, file: FilePath) -> References:
    """Return an object that follows a document's references.

    It adds the files that it reads to the configuration `source`.
    """
    return References(root, file, partial(_read, source), partial(_content, source), real_path)


def _read(source: Source, file: FilePath) -> Source:
    try:
        content = _content(source, file)
    except (OSError, ValueError) as error:
        words = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        return Source(str(file), problems=[Problem("", str(file), words)], readable=False)
    return read_content(content, str(file), json_value_of)


def _content(source: Source, file: FilePath) -> bytes:
    """Return a file's content, or its last content while it is missing or unreadable. Raises OSError."""
    source.referenced.add(file)
    try:
        content = read_file(file, MAX_BYTES)
    except OSError:
        kept = source.previous.get(file)
        if kept is None:
            raise
        source.missing.setdefault(file, [])
        content = kept
    source.included[file] = content
    source.digests[file] = digest_of(content)
    return content
