"""The console script `sluicegate`. It imports few modules, because multiprocessing also imports it in each worker."""

import signal
import sys

# These commands log nothing, or set up their own log.
_WITH_OWN_LOG = frozenset({"run", "demo", "sandbox", "version", "healthcheck"})


def main() -> None:
    """Run the command line."""
    command = next(iter(sys.argv[1:]), "--help")
    if command == "run":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # SIGHUP is ignored until the event loop handles it
    if command not in _WITH_OWN_LOG and not command.startswith("-"):
        from sluicegate.config.model import Log
        from sluicegate.proxy.reporting.logs.setup import set_up_logging

        set_up_logging(Log())  # log lines go to standard error, because standard output has the command's result
    from sluicegate.proxy.cli.commands import app

    app()
