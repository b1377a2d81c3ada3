"""Imported by Python at its start where this folder is on PYTHONPATH: opening a file hangs while another one beside it,
its name and `.hangs`, is there. As in a file system that hangs, the thread that opens cannot be interrupted.
"""

import os
import sys
import time


def _hang(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str) and not arguments[0].endswith(".hangs"):
        while os.access(arguments[0] + ".hangs", os.F_OK):
            time.sleep(0.02)


sys.addaudithook(_hang)
