"""Loads a file, the environment and command-line options into a Config, or reports all problems at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import AfterValidator, TypeAdapter, ValidationError

from sluicegate.config.contracts.include import include_contracts
from sluicegate.config.environment import apply_environment, override
from sluicegate.config.files.source import Path, Problem, Source
from sluicegate.config.files.topic_files import include_topics
from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.keys import annotation_at, each_key_of, is_optional, item_of, keys_of, section_of, takes_none
from sluicegate.config.model import Config
from sluicegate.config.remarks import hints_of, warnings_of
from sluicegate.config.validation_words import problems_of
from sluicegate.config.values.json_schema_kinds import Schema
from sluicegate.config.values.kinds import FILE_VERSION, NamesFile
from sluicegate.config.values.quantity import is_none

_Section = TypeVar("_Section")
_VERSION = "version"
_MOST_DIGITS = 9
_READERS: dict[type[Any], TypeAdapter[Any]] = {}  # building an adapter takes milliseconds


class ConfigError(Exception):
    """Raised if the configuration is invalid. `problems` lists all reasons."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class InvalidSection(ValueError):
    """Raised if the data do not fit the section. `details` are pydantic's errors."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__(str(error))
        self.details: list[Any] = list(error.errors(include_url=False))


@dataclass(frozen=True, slots=True)
class Option:
    """A command-line option. It overrides the key at `path` in the file and in the environment."""

    name: str
    path: Path
    value: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid configuration and its source.

    `warnings` are about probable mistakes, and `hints` about common misunderstandings.
    """

    config: Config
    source: Source
    warnings: tuple[str, ...]
    hints: tuple[str, ...]


def load_file(path: FilePath, environment: Mapping[str, str], options: Sequence[Option] = ()) -> Loaded:
    """Read a file, then apply the environment and the options. Raises ConfigError."""
    return load(read_file(path), environment, options, path.parent)


def load(
    source: Source, environment: Mapping[str, str], options: Sequence[Option] = (), folder: FilePath | None = None
) -> Loaded:
    """Validate a source with the environment and options applied. Raises ConfigError with every problem found.

    Relative file names start at `folder`, or at the working directory if it is None.
    """
    if not source.readable:
        raise ConfigError(source.problems)
    apply_environment(source, environment)
    for option in options:
        override(source, option.path, option.value, option.name)
    _check_version(source)
    include_topics(source, folder if folder is not None else FilePath())
    include_contracts(source, folder if folder is not None else FilePath())
    source.data = _without_nothing(source.data, (), source)
    resolve_files(source, folder if folder is not None else FilePath())
    problems = list(source.problems)
    config = None
    try:
        config = config_of(source.data)
    except InvalidSection as error:
        problems += problems_of(error.details, source, Config)
    if problems or config is None:
        raise ConfigError(list(dict.fromkeys(problems)))  # an entry and its copy with a contract have the same problems
    warnings = (*source.remarks, *warnings_of(config, source))
    return Loaded(config, source, warnings, tuple(hints_of(config, source)))


def _check_version(source: Source) -> None:
    """Raise ConfigError for a file of a newer version. Reports no other problems: its keys may be unknown here."""
    version = source.data.get(_VERSION)
    if isinstance(version, str) and version.isdecimal() and len(version) <= _MOST_DIGITS:
        version = int(version)
    if isinstance(version, int) and version > FILE_VERSION:
        path = (_VERSION,)
        words = (
            f"this file has version {version}, but this sluicegate reads version {FILE_VERSION}: upgrade all proxies, "
            f"then change the file"
        )
        raise ConfigError([Problem(source.key_of(path), source.place_of(path), words)])


def _without_nothing(value: Any, path: Path, source: Source) -> Any:
    """Return the data without empty keys and without optional numbers that are `none`.

    An example of an empty key is `topics:` with all its entries commented out. An empty optional section, such as
    `tls:`, is ambiguous and reported as a problem.
    """
    kind = annotation_at(Config, path)
    section = section_of(kind)
    if isinstance(value, list) and item_of(kind) is not None:
        return [_without_nothing(item, (*path, i), source) for i, item in enumerate(value)]
    if not isinstance(value, dict) or section is None:
        return value
    kept: dict[Any, Any] = {}
    for key, inner in value.items():
        wanted = keys_of(section).get(key)
        if is_none(inner) and takes_none(wanted):
            continue
        if inner is not None:
            kept[key] = _without_nothing(inner, (*path, key), source)
        elif wanted is None:
            kept[key] = inner
        elif is_optional(wanted) and section_of(wanted) is not None:
            what = f"write {key}: {{}} for its defaults" if not _required(wanted) else "add its required keys"
            message = f"the section is empty; {what}, or omit the key"
            source.problems.append(Problem(source.key_of((*path, key)), source.place_of((*path, key)), message))
    return kept


def _required(kind: Any) -> bool:
    section = section_of(kind)
    return section is not None and any(key.is_required for key in each_key_of(section))


def config_of(data: Any) -> Config:
    """Return the whole configuration. Raises InvalidSection."""
    return read_section(Config, data)


def read_section(section: type[_Section], data: Any) -> _Section:
    """Return a single section. Raises InvalidSection."""
    try:
        return _reader_of(section).validate_python(data)  # type: ignore[no-any-return]  # a cache forgets the type
    except ValidationError as error:
        raise InvalidSection(error) from None


def json_schema_of(section: type[Any]) -> Schema:
    """Return pydantic's JSON Schema for a section."""
    return _reader_of(section).json_schema(by_alias=True)


def _reader_of(section: type[Any]) -> TypeAdapter[Any]:
    if section not in _READERS:
        _READERS[section] = TypeAdapter(Annotated[Config, AfterValidator(_checked)] if section is Config else section)
    return _READERS[section]


def _checked(config: Config) -> Config:
    config.check()
    return config


def resolve_files(source: Source, folder: FilePath) -> None:
    """Make relative file names absolute, so that every process reads the same files.

    A name is relative to the file that contains it. Names in variables and options are relative to `folder`, the
    configuration's folder.
    """
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
