"""Child processes that end with the test process, even if that is killed."""

import shutil
import threading
from collections.abc import Sequence

_SETPRIV = shutil.which("setpriv")


def ending_with_tests(command: Sequence[str]) -> list[str]:
    """Wrap a command so that Linux kills its process when the parent ends (`PR_SET_PDEATHSIG`).

    The signal follows the thread that started the process, and other threads end before their process. Outside the main
    thread, and without util-linux's `setpriv`, the command is returned unchanged.
    """
    if _SETPRIV is None or threading.current_thread() is not threading.main_thread():
        return list(command)
    return [_SETPRIV, "--pdeathsig", "KILL", "--", *command]
