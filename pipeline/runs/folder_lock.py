"""Ensures that only one run at a time owns a folder of results.

Object stores have no locks, but they can list the files in a folder. Each run therefore writes its own claim and then
lists all claims. The claim with the earliest date in the file system owns the folder. A claim is valid while its
process runs (on this host) and its heartbeat is fresh (on any host), according to the file system's clock.
"""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Final

from py4j.protocol import Py4JError

from sluicegate.pipeline.runs.errors import PipelineError
from sluicegate.pipeline.runs.interruption import Interrupted
from sluicegate.pipeline.runs.results import Results

_FOLDER = ".running"
_CLAIM, _ALIVE = ".claim", ".alive"
_RENEW_SECONDS = 10.0
_FORGOTTEN_AFTER_MS = 60_000

_held_here: Final = set[str]()
"""The claims of this process. An unknown claim with this process's number belongs to an earlier process."""


class FolderInUse(PipelineError):
    """Raised if another run uses the folder. The message names the run."""


@contextmanager
def lock_folder(results: Results, job: str) -> Iterator[None]:
    """Lock the folder for one run of `job`. Raises FolderInUse."""
    token = token_hex(8)
    _held_here.add(token)
    try:
        _claim(results, job, token)
        ended = threading.Event()
        renewing = threading.Thread(target=_renew, args=(results, token, ended), daemon=True)
        renewing.start()
        try:
            yield
        finally:
            ended.set()
            renewing.join(_RENEW_SECONDS)
    finally:
        with suppress(Py4JError, OSError):  # if Java has ended, the next run finds that this process no longer exists
            _release(results, token)
        _held_here.discard(token)


def _claim(results: Results, job: str, token: str) -> None:
    mine = {"job": job, "host": socket.gethostname(), "pid": os.getpid(), "since": datetime.now(UTC).isoformat()}
    results.create_text(f"{_FOLDER}/{token}{_CLAIM}", json.dumps(mine))
    times = results.times_in(_FOLDER)
    my_time = times[f"{token}{_CLAIM}"]
    for name, time in times.items():
        other = name.removesuffix(_CLAIM)
        if not name.endswith(_CLAIM) or other == token:
            continue
        theirs = _read(results, name)
        if not _lives(other, theirs, my_time - max(time, times.get(f"{other}{_ALIVE}", time))):
            _forget(results, other)
        elif time <= my_time:
            raise FolderInUse(_in_use_message(results, theirs))


def _read(results: Results, name: str) -> dict[str, Any]:
    """Return a claim; an empty dict while it is being written or withdrawn."""
    try:
        found: dict[str, Any] = json.loads(results.read_text(f"{_FOLDER}/{name}"))
    except (ValueError, Py4JError):
        return {}
    return found


def _lives(token: str, claim: dict[str, Any], age_ms: int) -> bool:
    if age_ms > _FORGOTTEN_AFTER_MS:
        return False
    if claim.get("host") != socket.gethostname():
        return True
    if claim["pid"] == os.getpid():
        return token in _held_here
    try:
        os.kill(claim["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _renew(results: Results, token: str, ended: threading.Event) -> None:
    while not ended.wait(_RENEW_SECONDS):
        with suppress(Py4JError, OSError):  # the next renewal may succeed
            results.create_text(f"{_FOLDER}/{token}{_ALIVE}", "")


def _forget(results: Results, token: str) -> None:
    for suffix in (_CLAIM, _ALIVE):
        results.remove(f"{_FOLDER}/{token}{suffix}")


def _release(results: Results, token: str) -> None:
    """Withdraw the claim, even if the first signal arrives meanwhile. A second signal ends the process at once."""
    try:
        _forget(results, token)
    except Interrupted:
        _forget(results, token)
        raise


def _in_use_message(results: Results, claim: dict[str, Any]) -> str:
    folder = results.path("").rstrip("/")
    if not claim:
        return f"{folder} is in use by another run, which has just started: wait until it ends, or use another --out"
    return (
        f"{folder} is in use by sluicegate-spark {claim['job']}, process {claim['pid']} on {claim['host']}, since "
        f"{claim['since']}: wait until it ends, or use another --out (the lock of a failed host expires "
        f"after {_FORGOTTEN_AFTER_MS // 1000} s)"
    )
