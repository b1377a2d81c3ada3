"""Loaded by every Python process that has this folder on its path; the proxy's own code does not refer to it.

On SIGUSR2, it writes the counts of objects that belong to connections to a file. On SIGUSR1, the proxy's clock jumps by
the number of milliseconds in a file.
"""

import asyncio
import gc
import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from sluicegate.proxy.server import clock

_OF_CONNECTIONS = frozenset(
    {
        "Session",
        "Connection",
        "TlsSocket",
        "FrameReader",
        "RequestHandler",
        "LoginHandler",
        "ProduceIntake",
        "ResponseHandler",
        "InFlightQueue",
        "InFlightRequest",
        "RequestRunner",
        "Delivery",
        "SessionCloser",
        "ProduceRequest",
        "ValidatedRequest",
    }
)
_OURS = "sluicegate."
_FOLDER = Path(os.environ["FAULTS_FOLDER"])
_ahead_ms = [0]


def _write(_signal: int, _frame: object) -> None:
    gc.collect()
    found = Counter(filter(None, map(_kind, gc.get_objects())))
    file = _FOLDER / f"objects-{os.getpid()}.json"
    written = file.with_suffix(".new")
    written.write_text(json.dumps(found))
    written.replace(file)


def _kind(each: Any) -> str | None:
    """Return the kind of an object, or None. The admin endpoint's objects do not count; it has its own event loop."""
    kind = type(each)
    if isinstance(each, asyncio.Task):
        is_the_proxys = not each.done() and each.get_loop() is asyncio.get_running_loop()
        return f"task {getattr(each.get_coro(), '__qualname__', '?')}" if is_the_proxys else None
    if kind.__name__ == "TCPTransport":
        return "TCPTransport" if type(each.get_protocol()).__module__.startswith(_OURS) else None
    return kind.__name__ if kind.__name__ in _OF_CONNECTIONS and kind.__module__.startswith(_OURS) else None


def _jump(_signal: int, _frame: object) -> None:
    _ahead_ms[0] = int((_FOLDER / "clock_ahead_ms").read_text())


clock.now_ms = lambda: time.time_ns() // 1_000_000 + _ahead_ms[0]
signal.signal(signal.SIGUSR1, _jump)
signal.signal(signal.SIGUSR2, _write)
