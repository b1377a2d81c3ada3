"""What a proxy still has once its clients have left: as its metrics and its page tell, and as the system counts."""

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.bounds.resident import tree
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.faults.load import TIMEOUT_SECONDS

INSIDE = Path(__file__).with_name("inside")
"""What is loaded into the proxy's processes."""
_LEFT_SECONDS = 90
CLOCK_FILE = "clock_ahead_ms"
_ZERO = (
    "sluicegate_open_connections",
    "sluicegate_connections_by_stage",
    "sluicegate_in_flight",
    "sluicegate_holds",
    "sluicegate_held_bytes",
    "sluicegate_upstream_connections",
    "sluicegate_internal_errors_total",
    "sluicegate_bad_clients_total",
)


def descriptors(proxy: ProxyProcess) -> Counter[str]:
    """By kind (socket, pipe, ...), those of all its processes together."""
    found: Counter[str] = Counter()
    for pid in processes(proxy):
        found.update(_descriptors_of(pid))
    return found


def _descriptors_of(pid: int) -> list[str]:
    found = []
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                kind = str(link.readlink()).partition(":")[0]
                found.append(re.sub(r"\d+", "#", kind))  # a thread's file has another name where another has its place
    except OSError:
        return []  # it has ended meanwhile
    return found


def objects(proxy: ProxyProcess) -> Counter[str]:
    """By kind, what serves connections and what runs on event loops: of all its processes together."""
    found: Counter[str] = Counter()
    for pid in processes(proxy):
        written = Path(proxy.folder, f"objects-{pid}.json")
        written.unlink(missing_ok=True)
        os.kill(pid, signal.SIGUSR2)
        eventually(written.exists, TIMEOUT_SECONDS, f"what objects process {pid} has")
        found.update(json.loads(written.read_text()))
    return found


def processes(proxy: ProxyProcess) -> list[int]:
    """Their ids: of the one process, or of the supervisor, what workers are forked from, and the workers."""
    assert proxy.process is not None
    return [pid for pid in tree(proxy.process.pid) if _is_the_proxys(pid)]


def _is_the_proxys(pid: int) -> bool:
    """multiprocessing's resource tracker is Python's own."""
    try:
        command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False  # it has ended meanwhile
    return b"resource_tracker" not in command_line


class Left:
    """What there is more of than at the moment when this was made, at rest. `counted`: metrics that may have risen."""

    def __init__(self, proxy: ProxyProcess, counted: Sequence[str] = ()) -> None:
        self._proxy = proxy
        self._zero = [name for name in _ZERO if name not in counted]
        self._descriptors = descriptors(proxy)
        self._objects = objects(proxy)

    def look(self) -> dict[str, Any]:
        """What should not be there any more; nothing, once all is over."""
        left: dict[str, Any] = {name: value for name in self._zero if (value := self._proxy.metric(name)) != 0}
        status, text = self._proxy.get("/api/live")
        live = json.loads(text)["connections"] if status == 200 else {"no page": text}
        if live.get("count") != 0 or live["listed"]:
            left["/api/live"] = live
        if left:
            return left
        more = {
            "descriptors": descriptors(self._proxy) - self._descriptors,
            "objects": objects(self._proxy) - self._objects,
        }
        return {kind: dict(what) for kind, what in more.items() if what}

    def wait_until_nothing(self) -> None:
        """Raises AssertionError with what there is."""
        seen: list[dict[str, Any]] = [{}]

        def nothing() -> bool:
            seen.append(self.look())
            return not seen[-1]

        try:
            eventually(nothing, _LEFT_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"left in the proxy: {seen[-1]}") from error
