"""What a section is to the processes that are sent one."""

import pickle
import re
import subprocess
import sys
from dataclasses import replace

from tests.config.reading import SMALLEST, loaded

_SENT = 500
_KEPT_TUPLES = re.compile(r"^(\d+) free \d+-sized PyTupleObjects", re.MULTILINE)


def test_a_configuration_that_is_sent_comes_as_it_was() -> None:
    config = loaded(SMALLEST + "defaults: {mode: observe}").config

    came = pickle.loads(pickle.dumps(config))

    assert came == config
    assert replace(came, drain_seconds=1).drain_seconds == 1


def test_a_process_does_not_grow_with_each_that_it_is_sent() -> None:
    """CPython keeps tuples of fields for later use, and none is ever used again."""
    config = pickle.dumps(loaded(SMALLEST + "topics: [{match: orders, mode: observe}]").config)
    program = (
        f"import pickle, sys\nsent = {config!r}\nfor _ in range({_SENT}): pickle.loads(sent)\nsys._debugmallocstats()"
    )

    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stderr

    assert max(map(int, _KEPT_TUPLES.findall(told))) < _SENT
