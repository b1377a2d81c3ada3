"""From a file, the environment and the command line to a Config, or to every problem at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from sluicegate.config.environment import apply_environment, override
from sluicegate.config.files.relative_names import resolve_files
from sluicegate.config.files.topic_files import include_topics
from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.keys import annotation_at, each_key_of, is_optional, item_of, keys_of, section_of
from sluicegate.config.model import Config
from sluicegate.config.option import Option
from sluicegate.config.reading import NotWhatIsWanted, config_of
from sluicegate.config.remarks import hints_of, warnings_of
from sluicegate.config.source import Path, Problem, Source
from sluicegate.config.validation_words import problem_of


class ConfigError(Exception):
    """The configuration cannot be used; `problems` says why, one by one."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Loaded:
    """A usable configuration, where its values stand, and what its writer should still know.

    `warnings` are of what is probably a mistake, `hints` of what is often misunderstood.
    """

    config: Config
    source: Source
    warnings: tuple[str, ...]
    hints: tuple[str, ...]


def load_file(path: FilePath, environment: Mapping[str, str], options: Sequence[Option] = ()) -> Loaded:
    """Read a file, apply the environment, then options. Raises ConfigError."""
    return load(read_file(path), environment, options, path.parent)


def load(
    source: Source, environment: Mapping[str, str], options: Sequence[Option] = (), folder: FilePath | None = None
) -> Loaded:
    """Validate what a source, the environment and options say. Raises ConfigError with every problem found.

    `folder` is where relative names of files begin; None: where the process was started.
    """
    if not source.readable:
        raise ConfigError(source.problems)
    apply_environment(source, environment)
    for option in options:
        override(source, option.path, option.value, option.name)
    include_topics(source, folder if folder is not None else FilePath())
    source.data = _without_nothing(source.data, (), source)
    resolve_files(source, folder if folder is not None else FilePath())
    problems = list(source.problems)
    config = None
    try:
        config = config_of(source.data)
    except NotWhatIsWanted as error:
        problems += [problem_of(detail, source) for detail in error.details]
    if problems or config is None:
        raise ConfigError(problems)
    warnings = (*source.remarks, *warnings_of(config, source))
    return Loaded(config, source, warnings, tuple(hints_of(config, source)))


def _without_nothing(value: Any, path: Path, source: Source) -> Any:
    """The data without keys that nothing stands behind, as when all below `topics:` is commented out.

    Where nothing could mean two things, as below `tls:`, it is a problem.
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
        if inner is not None:
            kept[key] = _without_nothing(inner, (*path, key), source)
        elif wanted is None:
            kept[key] = inner
        elif is_optional(wanted) and section_of(wanted) is not None:
            what = ": {} to have it with its defaults" if not _required(wanted) else " below it what is needed"
            message = f"nothing stands behind it; write {key}{what}, or leave the key out"
            source.problems.append(Problem(source.key_of((*path, key)), source.place_of((*path, key)), message))
    return kept


def _required(kind: Any) -> bool:
    section = section_of(kind)
    return section is not None and any(key.is_needed for key in each_key_of(section))
