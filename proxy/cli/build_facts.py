"""What a person is asked for with a report of a mistake: which build this is, and which libraries it validates with."""

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sluicegate.proxy.reporting.build_info import describe

_ROOT = Path(__file__).resolve().parents[2]
_REVISION_FILE = "revision.txt"
_SHOWN = 12
# What reads batches, and what rules ask.
_DECIDING = ("construct", "cramjam", "crc32c", "google-re2", "isal", "lz4", "zstandard")
_OF_RULES = ("cel-expr-python", "fastavro", "grpcio-tools", "jsonschema-rs", "orjson", "protobuf")
_BESIDE = ("confluent-kafka", "cryptography", "pydantic", "uvloop")


def lines() -> Iterator[str]:
    """The first line is the one that scripts look at."""
    yield describe()
    yield f"commit: {revision() or 'not known'}"
    c_library = " ".join(platform.libc_ver()).strip()
    yield f"python: {platform.python_version()} on {platform.system()} {platform.machine()} {c_library}".rstrip()
    for what, names in (("validated with", _DECIDING), ("rules", _OF_RULES), ("beside", _BESIDE)):
        found = [f"{name} {number}" for name in names if (number := _version(name)) is not None]
        yield f"{what}: {', '.join(found) or 'none installed'}"


def revision() -> str | None:
    """The commit that this was built from, or that is checked out; None where nothing tells."""
    told = os.environ.get("SLUICEGATE_REVISION", "").strip() or _text_of(Path(__file__).parents[2] / _REVISION_FILE)
    found = told or _checked_out(_ROOT / ".git")
    return found[:_SHOWN] if found is not None and found.isalnum() else None


def _checked_out(git: Path) -> str | None:
    head = _text_of(git / "HEAD")
    if head is None or not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    packed = _text_of(git / "packed-refs") or ""
    return _text_of(git / name) or next((line[:40] for line in packed.splitlines() if line.endswith(f" {name}")), None)


def _text_of(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
