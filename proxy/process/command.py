"""Where the command `sluicegate` begins. It imports nothing itself: multiprocessing imports it in each worker too."""

import sys


def main() -> None:
    """The console script. What serves does not read the command line itself: that is a reader's."""
    if sys.argv[1:2] == ["run"]:
        from sluicegate.proxy.process.serving import main as run  # noqa: PLC0415
    else:
        from sluicegate.proxy.process.cli import main as run  # noqa: PLC0415
    run()
