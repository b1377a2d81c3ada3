"""Reads a configuration in a test. The result is the configuration, or all problems."""

import pytest

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import ConfigError, Loaded, Option, load

SMALLEST = "upstream: {bootstrap: ['h:1']}\nlisten: {bootstrap: '127.0.0.1:2'}\n"


def load_text(text: str, *options: Option, **environment: str) -> Loaded:
    return load(read_yaml(text, "c.yaml"), environment, options)


def problems_of_text(text: str, *options: Option, **environment: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_text(text, *options, **environment)
    return [str(problem) for problem in caught.value.problems]
