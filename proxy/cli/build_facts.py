"""Describes the build for bug reports, with its version, commit, interpreter and the libraries that validation uses."""

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sluicegate.proxy.reporting.build_info import version_sentences

_ROOT = Path(__file__).resolve().parents[2]
_REVISION_FILE = "revision.txt"
_SHOWN = 12
# The libraries that read batches, and the libraries that rules use.
_VALIDATING = ("construct", "cramjam", "crc32c", "google-re2", "isal", "lz4", "zstandard")
_RULE_LIBRARIES = ("cel-expr-python", "grpcio-tools", "jsonschema-rs", "orjson", "protobuf")
_OTHER_LIBRARIES = ("confluent-kafka", "cryptography", "pydantic", "uvloop")


def version_lines() -> Iterator[str]:
    """Yield the lines of `sluicegate version`. Scripts parse the first line."""
    yield version_sentences()
    yield f"commit: {commit_of_build() or 'unknown'}"
    c_library = " ".join(platform.libc_ver()).strip()
    yield f"python: {platform.python_version()} on {platform.system()} {platform.machine()} {c_library}".rstrip()
    groups = (("validated with", _VALIDATING), ("rules", _RULE_LIBRARIES), ("other libraries", _OTHER_LIBRARIES))
    for title, names in groups:
        found = [f"{name} {number}" for name in names if (number := _version(name)) is not None]
        yield f"{title}: {', '.join(found) or 'none installed'}"


def commit_of_build() -> str | None:
    """Return the commit of this build or checkout, or None if it is unknown."""
    built_from = os.environ.get("SLUICEGATE_REVISION", "").strip() or _text_of(
        Path(__file__).parents[2] / _REVISION_FILE
    )
    found = built_from or _checked_out(_ROOT / ".git")
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
