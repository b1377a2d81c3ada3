"""Runs a process that only sleeps and wakes. The delay after each sleep shows how much a busy machine slows any
process."""

import gc
import threading
import time
from typing import Any

from tests.bounds.side_process import report, serve_commands

_EVERY_SECONDS = 0.010


class SleepDelayMeter(threading.Thread):
    """`longest`: the longest delay after the time of waking (s), since it was set to zero."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.longest = 0.0

    def run(self) -> None:
        while True:
            due = time.monotonic() + _EVERY_SECONDS
            time.sleep(_EVERY_SECONDS)
            self.longest = max(self.longest, time.monotonic() - due)


def main() -> None:
    gc.disable()
    sleeper = SleepDelayMeter()
    sleeper.start()
    report()

    def start() -> dict[str, Any]:
        sleeper.longest = 0.0
        return {}

    serve_commands({"start": start, "wait": lambda: {"longest": sleeper.longest}})


if __name__ == "__main__":
    main()
