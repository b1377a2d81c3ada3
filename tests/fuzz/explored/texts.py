"""A configuration file of arbitrary bytes is loaded, or every problem is reported with its place."""

import time
from pathlib import Path

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import ConfigError, load

_MOST_BYTES = 32 * 1024
_MOST_SECONDS = 5.0


def configuration(data: bytes) -> None:
    begun = time.thread_time()
    try:
        load(read_yaml(data[:_MOST_BYTES].decode(errors="replace"), "c.yaml"), {}, (), Path("/nowhere"))
    except ConfigError as error:
        assert error.problems
        for problem in error.problems:
            assert str(problem).isprintable(), "an unsafe text of the file is shown"
    assert time.thread_time() - begun < _MOST_SECONDS
