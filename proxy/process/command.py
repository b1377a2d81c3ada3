"""Where the command `sluicegate` begins. It imports nothing itself: multiprocessing imports it in each worker too."""


def main() -> None:
    """The console script."""
    from sluicegate.proxy.process.cli import main as run  # noqa: PLC0415

    run()
