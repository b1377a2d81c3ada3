"""From a file, the environment and the command line to a Config, or to every problem at once."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

from pydantic import BaseModel, ValidationError

from config.environment import apply_environment
from config.model import Config
from config.suggestions import nearest
from config.yaml_source import Path, Problem, Source, dotted, read_yaml

_DEPRECATED = "message.timestamp.difference.max.ms"


class ConfigError(Exception):
    """The configuration cannot be used; `problems` says why, one by one."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Loaded:
    """A usable configuration and what its writer should still know."""

    config: Config
    warnings: tuple[str, ...]


def load_file(path: FilePath, environment: Mapping[str, str]) -> Loaded:
    """Read a file and apply the environment. Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError([Problem("", str(path), f"cannot be read: {reason}")]) from error
    return load(read_yaml(text, str(path)), environment)


def load(source: Source, environment: Mapping[str, str]) -> Loaded:
    """Validate what a source and the environment say. Raises ConfigError with every problem found."""
    apply_environment(source, environment)
    problems = list(source.problems)
    try:
        config = Config.model_validate(source.data)
    except ValidationError as error:
        problems += [_problem(detail, source) for detail in error.errors(include_url=False)]
    if problems:
        raise ConfigError(problems)
    return Loaded(config, tuple(_warnings(config, source)))


def _problem(detail: Any, source: Source) -> Problem:
    path: Path = tuple(detail["loc"])
    place = source.place_of(path)
    kind = detail["type"]
    if kind == "extra_forbidden":
        hint = nearest(str(path[-1]), _known_keys(path[:-1]))
        message = "no such key" + (f"; did you mean {hint}?" if hint else "")
    elif kind == "missing":
        message = "this key is needed"
    elif kind == "value_error":
        message = str(detail["ctx"]["error"])
    else:
        message = f"{detail['msg'][0].lower()}{detail['msg'][1:]}; found {detail['input']!r}"
    return Problem(dotted(path), place, message)


def _known_keys(path: Path) -> list[str]:
    """The keys that may stand under `path`."""
    model: Any = Config
    for part in path:
        if isinstance(part, str) and isinstance(model, type) and issubclass(model, BaseModel):
            field = next(f for n, f in model.model_fields.items() if part in (n, f.alias))
            model = field.annotation
        elif isinstance(part, int):
            model = model.__args__[0]
    fields = model.model_fields if isinstance(model, type) and issubclass(model, BaseModel) else {}
    return [field.alias or name for name, field in fields.items()]


def _warnings(config: Config, source: Source) -> list[str]:
    sections: list[tuple[Path, Any]] = [(("defaults",), config.defaults)]
    sections += [(("topics", i), topic) for i, topic in enumerate(config.topics)]
    return [
        f"{source.place_of((*path, _DEPRECATED))}: {dotted((*path, _DEPRECATED))} is deprecated (KIP-937); it stands "
        "for each of message.timestamp.before.max.ms and message.timestamp.after.max.ms that is not set. Set those."
        for path, keys in sections
        if keys.difference_max_ms is not None
    ]
