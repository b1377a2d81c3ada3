"""What is installed: the folders of the repository, each linked here, under the one name they have beside others."""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return `__version__`, which is read when it is asked for: importing the package imports nothing else."""
    if name != "__version__":
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from sluicegate.proxy.reporting.build_info import VERSION  # noqa: PLC0415

    return VERSION
