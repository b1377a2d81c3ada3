"""Side by side, each process starts brokers of its own. A file's tests stay together, and so do files that share a
cluster which takes long to start.
"""

from typing import TYPE_CHECKING

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer

_TOGETHER = {
    "three brokers": ("broker_goes_first", "clients", "faults", "operation"),
    "brokers that make no topic by themselves": ("quarantine", "violation_topic"),
}
_SHARES = {f"tests/integration/test_{name}.py": what for what, names in _TOGETHER.items() for name in names}


class FilesThatShare(LoadFileScheduling):
    """One process after another takes the next file, or all the files that share."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "two brokers of each release" if file.startswith("tests/conformance/") else _SHARES.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> FilesThatShare | None:
    return FilesThatShare(config, log) if config.getvalue("dist") == "loadfile" else None
