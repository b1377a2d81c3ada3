"""The running version, and whether its native modules are compiled."""

from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from sluicegate import __version__
from sluicegate.protocol.records import scan

_PACKAGES = ("protocol", "proxy", "validation")

VERSION = __version__
SCAN_IS_COMPILED: bool = scan.is_compiled()


def version_sentences() -> str:
    """Return the version in one or two sentences."""
    if not SCAN_IS_COMPILED:
        return (
            f"sluicegate {VERSION}, record scan NOT compiled: validation takes about 60 times as long per record. "
            "Install a C compiler and Python's headers, and reinstall."
        )
    missing = sorted(uncompiled_modules(Path(__file__).parents[2]))
    if missing:
        return f"sluicegate {VERSION}, record scan compiled, but NOT {', '.join(missing)}: reinstall it."
    return f"sluicegate {VERSION}, record scan compiled"


def uncompiled_modules(root: Path) -> Iterator[str]:
    """Yield the modules that have C types (.pxd) but no compiled form."""
    for package in _PACKAGES:
        for types in (root / package).rglob("*.pxd"):
            if not any(types.with_suffix(suffix).exists() for suffix in (".py", ".pyx")):
                continue  # declarations only, which are compiled into the modules that use them
            if not any(types.with_suffix(suffix).exists() for suffix in EXTENSION_SUFFIXES):
                yield ".".join(types.relative_to(root).with_suffix("").parts)
