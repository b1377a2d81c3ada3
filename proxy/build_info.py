"""What is running: the version, and whether its hot path is compiled."""

from importlib.metadata import PackageNotFoundError, version

from protocol.records import scan


def _version() -> str:
    try:
        return version("sluicegate")
    except PackageNotFoundError:
        return "unknown (not installed)"


VERSION = _version()
SCAN_IS_COMPILED: bool = scan.is_compiled()


def describe() -> str:
    """One or two sentences for a person."""
    if SCAN_IS_COMPILED:
        return f"sluicegate {VERSION}, record scan compiled"
    return (
        f"sluicegate {VERSION}, record scan NOT compiled: judging takes about sixty times as long per record. "
        "Install a C compiler and run the installation again."
    )
