"""The console script `sluicegate`. It imports little itself, because multiprocessing imports it in each worker too."""

import signal
import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:2] == ["run"]:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the event loop handles it
    from sluicegate.proxy.cli.commands import app

    app()
