"""Relative names of files begin at the folder of the file that they stand in, whichever process reads it from where.

Variables of the environment and options stand in no file: theirs begin where the configuration's do.
"""

from pathlib import Path as FilePath
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from sluicegate.config.keys import annotation_at, item_of, keys_of, section_of
from sluicegate.config.model import Config
from sluicegate.config.source import Path, Source
from sluicegate.config.values.notes import NamesFile


def resolve_files(source: Source, folder: FilePath) -> None:
    """Put whole names in the place of relative ones; `folder` is the configuration's."""
    source.data = _resolved(source.data, (), source, folder)


def _resolved(value: Any, path: Path, source: Source, folder: FilePath) -> Any:
    folder = source.folders.get(path, folder)
    kind = annotation_at(Config, path)
    if isinstance(value, str):
        return str(folder / value) if value and _names_a_file(kind) else value
    if isinstance(value, list) and item_of(kind) is not None:
        return [_resolved(item, (*path, i), source, folder) for i, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    section = section_of(kind)
    known = keys_of(section) if section is not None else value if item_of(kind) is not None else {}
    return {key: _resolved(held, (*path, key), source, folder) if key in known else held for key, held in value.items()}


def _names_a_file(kind: Any) -> bool:
    if get_origin(kind) is Annotated:
        return any(isinstance(note, NamesFile) for note in get_args(kind)[1:])
    return get_origin(kind) in (Union, UnionType) and any(map(_names_a_file, get_args(kind)))
