"""What is running: the version, and whether its hot path is compiled."""

from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from sluicegate.protocol.records import scan

_PACKAGES = ("protocol", "proxy", "validation")

# As pyproject.toml has it, which a test holds to. Asking the installation would load what reads e-mail: a megabyte.
VERSION = "0.1.0"
SCAN_IS_COMPILED: bool = scan.is_compiled()


def describe() -> str:
    """One or two sentences for a person."""
    if not SCAN_IS_COMPILED:
        return (
            f"sluicegate {VERSION}, record scan NOT compiled: validating takes about sixty times as long per record. "
            "Install a C compiler and Python's headers, and run the installation again."
        )
    missing = sorted(uncompiled(Path(__file__).parents[2]))
    if missing:
        return f"sluicegate {VERSION}, record scan compiled, but NOT {', '.join(missing)}: install it again."
    return f"sluicegate {VERSION}, record scan compiled"


def uncompiled(root: Path) -> Iterator[str]:
    """Modules whose C types are there (.pxd) and whose compiled form is not."""
    for package in _PACKAGES:
        for types in (root / package).rglob("*.pxd"):
            if not any(types.with_suffix(suffix).exists() for suffix in (".py", ".pyx")):
                continue  # only declarations, compiled into those that use them
            if not any(types.with_suffix(suffix).exists() for suffix in EXTENSION_SUFFIXES):
                yield ".".join(types.relative_to(root).with_suffix("").parts)
