"""Child processes that end with the process that runs the tests, also when that is killed and cleans nothing up."""

import shutil
import threading
from collections.abc import Sequence

_SETPRIV = shutil.which("setpriv")


def ending_with_tests(command: Sequence[str]) -> list[str]:
    """Return the command so that Linux kills its process when the one that starts it ends (`PR_SET_PDEATHSIG`).

    Linux looks at the thread that started it, and other threads end before their process: there the command stays as
    it is, as it does where util-linux's `setpriv` is not installed.
    """
    if _SETPRIV is None or threading.current_thread() is not threading.main_thread():
        return list(command)
    return [_SETPRIV, "--pdeathsig", "KILL", "--", *command]
