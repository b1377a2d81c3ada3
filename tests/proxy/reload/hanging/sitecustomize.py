"""Makes files hang: opening a file blocks while a file with its name and `.hangs` is next to it.

Python imports this module at its start if this folder is on PYTHONPATH. As in a file system that hangs, the thread that
opens the file cannot be interrupted.
"""

import os
import sys
import time


def _hang(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str) and not arguments[0].endswith(".hangs"):
        while os.access(arguments[0] + ".hangs", os.F_OK):
            time.sleep(0.02)


sys.addaudithook(_hang)
