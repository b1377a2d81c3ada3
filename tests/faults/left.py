"""Measures the resources that a proxy still uses after its clients left, with its metrics, its web UI and the operating
system."""

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.bounds.resident import process_and_descendants
from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.faults.load import TIMEOUT_SECONDS

INSIDE = Path(__file__).with_name("inside")
"""Code that the proxy's processes load."""
_LEFT_SECONDS = 90
CLOCK_FILE = "clock_ahead_ms"
_ZERO = (
    "sluicegate_open_connections",
    "sluicegate_connections_by_stage",
    "sluicegate_in_flight_requests",
    "sluicegate_paused_connections",
    "sluicegate_buffered_bytes",
    "sluicegate_upstream_connections",
    "sluicegate_internal_errors_total",
    "sluicegate_protocol_errors_total",
)


def count_descriptors(proxy: ProxyProcess) -> Counter[str]:
    """Count the descriptors of all processes of the proxy, by kind (socket, pipe, ...)."""
    found: Counter[str] = Counter()
    for pid in process_ids(proxy):
        found.update(_descriptors_of(pid))
    return found


def _descriptors_of(pid: int) -> list[str]:
    found = []
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # the file was closed in the meantime
                kind = str(link.readlink()).partition(":")[0]
                found.append(re.sub(r"\d+", "#", kind))  # ids of threads and files differ between two reads
    except OSError:
        return []  # the process has ended
    return found


def count_connection_objects(proxy: ProxyProcess) -> Counter[str]:
    """Count the objects of connections and event loops in all processes of the proxy, by kind."""
    found: Counter[str] = Counter()
    for pid in process_ids(proxy):
        written = Path(proxy.folder, f"objects-{pid}.json")
        written.unlink(missing_ok=True)
        os.kill(pid, signal.SIGUSR2)
        eventually(written.exists, TIMEOUT_SECONDS, f"the object counts of process {pid}")
        found.update(json.loads(written.read_text()))
    return found


def process_ids(proxy: ProxyProcess) -> list[int]:
    """Return the process ids of the proxy, including supervisor, fork server and workers."""
    assert proxy.process is not None
    return [pid for pid in process_and_descendants(proxy.process.pid) if _is_the_proxys(pid)]


def _is_the_proxys(pid: int) -> bool:
    """Return whether a process is the proxy's; multiprocessing's resource tracker is not."""
    try:
        command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False  # the process has ended
    return b"resource_tracker" not in command_line


class LeftoverCheck:
    """Compares the idle proxy with its state at construction. `counted`: metrics that may have risen."""

    def __init__(self, proxy: ProxyProcess, counted: Sequence[str] = ()) -> None:
        self._proxy = proxy
        self._zero = [name for name in _ZERO if name not in counted]
        self._descriptors = count_descriptors(proxy)
        self._objects = count_connection_objects(proxy)

    def unfreed_resources(self) -> dict[str, Any]:
        """Return the resources that were not freed."""
        left: dict[str, Any] = {name: value for name in self._zero if (value := self._proxy.metric(name)) != 0}
        status, text = self._proxy.get("/api/live")
        live = json.loads(text)["connections"] if status == 200 else {"no page": text}
        if live.get("count") != 0 or live["listed"]:
            left["/api/live"] = live
        if left:
            return left
        more = {
            "descriptors": count_descriptors(self._proxy) - self._descriptors,
            "objects": count_connection_objects(self._proxy) - self._objects,
        }
        return {kind: dict(what) for kind, what in more.items() if what}

    def wait_until_nothing(self) -> None:
        """Wait until all resources are freed. Raises AssertionError that names the others."""
        seen: list[dict[str, Any]] = [{}]

        def is_nothing_left() -> bool:
            seen.append(self.unfreed_resources())
            return not seen[-1]

        try:
            eventually(is_nothing_left, _LEFT_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"not freed in the proxy: {seen[-1]}") from error
