"""The memory of an idle proxy: one process, and each further worker (smaps' PSS).

`python -m bench.memory` prints both.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.machine import resident_of, share_of, with_children
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess

_NOBODY = "127.0.0.1:1"
_FEW, _MANY = 2, 6


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes: resident in one process, and what each further worker adds to all processes together."""

    one_process: int
    further_worker: float


def measure() -> Held:
    """Starts three proxies, one after the other."""
    return Held(_held(1), (_held(_MANY) - _held(_FEW)) / (_MANY - _FEW))


def _held(workers: int) -> int:
    with TemporaryDirectory() as folder:
        proxy = ProxyProcess(Path(folder), _NOBODY, {"workers": workers})
        proxy.environment = {}
        proxy.start(ready=False)
        try:
            eventually(lambda: proxy.metric("sluicegate_workers") == workers, 60)
            time.sleep(1)  # memory is still freed after the start
            assert proxy.process is not None
            pid = proxy.process.pid
            return resident_of(pid) if workers == 1 else sum(map(share_of, with_children(pid)))
        finally:
            proxy.stop()


if __name__ == "__main__":
    found = measure()
    print(f"one process {found.one_process / 2**20:.1f} MB, each further worker {found.further_worker / 2**20:.1f} MB")
