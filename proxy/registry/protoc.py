"""From .proto files to a FileDescriptorSet, by the compiler that grpcio-tools brings, in a process of its own."""

import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from sluicegate.proxy.rules_process.protoc import NEEDS, write_sources
from sluicegate.validation.rules.schemas.content import SchemaUnusable

_SECONDS = 10


def descriptor_set_of(name: str, text: str, imports: Mapping[str, str]) -> bytes:
    """`text` and all that it imports; `imports`: by the names that it has for them. Raises SchemaUnusable."""
    _need_compiler()
    try:
        with TemporaryDirectory(prefix="sluicegate-proto-") as folder:
            write_sources(Path(folder), {**imports, name: text})
            return _compiled(Path(folder), name)
    except OSError as error:
        raise SchemaUnusable(
            f"it is compiled in a folder for temporary files, which cannot be used (TMPDIR): {error.strerror}"
        ) from error


def descriptor_set_of_file(path: Path) -> bytes:
    """A .proto file, which may import what lies beside or below it. Raises SchemaUnusable."""
    _need_compiler()
    return _compiled(path.resolve().parent, path.name)


def _compiled(folder: Path, name: str) -> bytes:
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={folder}", "--include_imports"]
    command += ["--descriptor_set_out=/dev/stdout", name]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603  # names are ours
    except subprocess.TimeoutExpired:
        raise SchemaUnusable(f"it is not compiled within {_SECONDS} s") from None
    except OSError as error:
        raise SchemaUnusable(f"the compiler does not start: {error.strerror}") from error
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").replace(f"{folder}/", "").strip()
        raise SchemaUnusable(f"it is not compiled: {words[:300]}")
    return done.stdout


def _need_compiler() -> None:
    if find_spec("grpc_tools") is None:
        raise SchemaUnusable(NEEDS)
