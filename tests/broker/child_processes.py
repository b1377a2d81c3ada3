"""Starts child processes that end with the test process, even if the test process is killed.

`killed_with_parent` is for a command without descendants that outlive it. `ProcessGroup` ends all descendants.
"""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

_SETPRIV = shutil.which("setpriv")


def killed_with_parent(command: Sequence[str]) -> list[str]:
    """Wrap a command so that Linux kills its process when the parent ends (`PR_SET_PDEATHSIG`).

    The signal follows the thread that started the process, and other threads end before their process. Outside the main
    thread, and without util-linux's `setpriv`, the command is returned unchanged.
    """
    if _SETPRIV is None or threading.current_thread() is not threading.main_thread():
        return list(command)
    return [_SETPRIV, "--pdeathsig", "KILL", "--", *command]


_WATCHDOG = 'read group && { read _; kill -s KILL -- "-$group"; }'
"""Kills a process group when the other end of its standard input closes, which happens when the test process ends."""


class ProcessGroup:
    """A command in a process group of its own. The whole group is killed by `end`, or when the test process ends."""

    def __init__(self, command: Sequence[str], **how: Any) -> None:
        """`how`: arguments of Popen."""
        self._watchdog = subprocess.Popen(["sh", "-c", _WATCHDOG], stdin=subprocess.PIPE, start_new_session=True)
        self.process: subprocess.Popen[bytes] = subprocess.Popen(killed_with_parent(command), process_group=0, **how)
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{self.process.pid}\n".encode())
        self._watchdog.stdin.flush()

    def interrupt(self) -> None:
        """Send SIGINT to the whole group, as a terminal does for Ctrl-C."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> None:
        """Kill whatever is left of the group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._watchdog.kill()
        self._watchdog.communicate()
