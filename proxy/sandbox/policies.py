"""Reads production's configuration for the sandbox, with the sandbox's own addresses, logins and outputs."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sluicegate.config.environment import PREFIX
from sluicegate.config.files.source import Problem
from sluicegate.config.files.yaml_source import read_file
from sluicegate.config.loading import ConfigError, Loaded, load
from sluicegate.config.model import Config
from sluicegate.proxy.reload.config_check import check_policies

REPLACED = ("upstream", "listen", "admin", "violations", "otel", "state", "workers", "log", "drain_timeout_seconds")
"""The sections of the configuration that the sandbox replaces. All others apply as in production."""
_NAMES = ("sluicegate.yaml", "sluicegate.yml")
_DRAIN_SECONDS = 2


def configuration_in(path: Path) -> Path:
    """Return the configuration file: `path` itself, or the file sluicegate.yaml in a folder. Raises ConfigError."""
    if not path.is_dir():
        return path
    for name in _NAMES:
        if (path / name).is_file():
            return path / name
    problem = "the folder has no sluicegate.yaml; name the configuration file instead"
    raise ConfigError([Problem("", str(path), problem)])


def sandbox_configuration(file: Path, environment: Mapping[str, str], replaced: Mapping[str, Any]) -> Loaded:
    """Compile the policies in a configuration file, and return the configuration with other values of `REPLACED`.

    Variables in `environment` override the policies. Raises ConfigError.
    """
    source = read_file(file)
    if source.readable:
        for section in REPLACED:
            source.data.pop(section, None)
            for path in [path for path in source.places if path[0] == section]:
                del source.places[path]
        source.data |= {
            "log": {"level": "error"},
            "violations": {"file": os.devnull},  # events contain samples only if there is a destination
            "drain_timeout_seconds": _DRAIN_SECONDS,
            **replaced,
        }
    loaded = load(source, _of_policies(environment), (), file.parent)
    check_policies(loaded)
    return replace(loaded, config=_with_samples(loaded.config))


def _of_policies(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables for replaced sections."""
    prefixes = tuple(f"{PREFIX}{section.upper()}" for section in REPLACED)
    return {name: value for name, value in environment.items() if not name.startswith(prefixes)}


def _with_samples(config: Config) -> Config:
    """Return the configuration with `samples`, so that reports show the beginnings of bad records.

    Topics with sensitive fields are excepted.
    """
    shown = tuple(
        replace(topic, samples=True) if topic.samples is None and topic.sensitive is None else topic
        for topic in config.topics
    )
    has_sensitive = any(keys.sensitive for keys in (config.defaults, *config.topics))
    defaults = config.defaults if has_sensitive else replace(config.defaults, samples=True)
    return replace(config, topics=shown, defaults=defaults)
