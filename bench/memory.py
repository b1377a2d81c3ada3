"""Measures the memory of a proxy: of one process, idle and after a load, and of each additional worker (smaps' PSS).

`python -m bench.memory` prints the results.
"""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.before_stand_in import HOST, SETTINGS, stand_in, started, upstream_of
from bench.ending import end_on_sigterm
from bench.machine import resident_of, share_of, with_children
from bench.small_requests import connect, exchange, request_of
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.wire.batches import CODECS, Rec

_NOBODY = "127.0.0.1:1"
_FEW, _MANY = 2, 6
_MB = 1 << 20
_CONNECTIONS, _REQUESTS = 20, 400


@dataclass(frozen=True, slots=True)
class Held:
    """The measured bytes.

    They are the resident bytes in one idle process, in one process after a load, and in a Python process that does
    nothing; and the bytes that each additional worker adds to the sum of all processes.
    """

    one_process: int
    loaded: int
    bare_python: int
    further_worker: float

    @property
    def above_python_mb(self) -> dict[str, float]:
        """Return the MB that the proxy adds to the build of Python that runs it, by state."""
        return {"idle": (self.one_process - self.bare_python) / _MB, "loaded": (self.loaded - self.bare_python) / _MB}


def measure() -> Held:
    """Measure four proxies, one after the other."""
    further = (_held(_MANY) - _held(_FEW)) / (_MANY - _FEW)
    return Held(_held(1), _loaded(), _bare_python(), further)


def _bare_python() -> int:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        held = resident_of(process.pid)
        process.kill()
    return held


def _loaded() -> int:
    """Return the resident bytes after large accepted and rejected batches of each codec, on still open connections."""
    now = int(time.time() * 1000)
    with TemporaryDirectory() as folder, stand_in() as port:
        proxy = ProxyProcess(Path(folder), f"{HOST}:{port}", SETTINGS)
        proxy.config["upstream"] = upstream_of(port)
        proxy.environment = {}
        with started(proxy, "sluicegate") as target:
            assert target.pid is not None
            sockets = connect(target, _CONNECTIONS)
            for codec in CODECS.values():
                good = [Rec(now, b"key", b"%d" % i * 150) for i in range(600)]
                exchange(sockets, request_of("bench", good, codec), _REQUESTS)
                exchange(sockets, request_of("bench", [*good, Rec(1, b"key", b"late")], codec), 40, error_code=32)
            held = resident_of(target.pid)
            for each in sockets:
                each.close()
    return held


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
    end_on_sigterm()
    found = measure()
    one, loaded, bare = (size / _MB for size in (found.one_process, found.loaded, found.bare_python))
    print(f"one process {one:.1f} MB, after a load {loaded:.1f} MB, a bare Python {bare:.1f} MB")
    print(f"each further worker {found.further_worker / _MB:.1f} MB")
