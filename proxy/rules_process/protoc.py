"""Runs the Protobuf compiler of grpcio-tools within this process, which can be stopped."""

import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module, resources
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory, TemporaryFile

from sluicegate.validation.rules.schemas.content import SchemaUnusable

OWN_NAME = "registered-schema.proto"
DESCRIPTOR_SET = "descriptor-set"
_STDERR = 2
_MOST_WORDS = 300


def write_descriptor_set(folder: str, text: str, imports: Mapping[str, str]) -> None:
    """Compile `text` into the file DESCRIPTOR_SET of `folder`. `imports`: texts by the names that `text` imports.

    Raises SchemaUnusable.
    """
    try:
        compiler = import_module("grpc_tools._protoc_compiler")
    except ImportError:
        raise SchemaUnusable(NEEDS) from None
    sources = Path(folder) / "sources"
    write_sources(sources, {**imports, OWN_NAME: text})
    arguments = ["protoc", f"--proto_path={sources}", f"--proto_path={resources.files('grpc_tools') / '_proto'}"]
    arguments += ["--include_imports", f"--descriptor_set_out={Path(folder) / DESCRIPTOR_SET}", OWN_NAME]
    with TemporaryFile(dir=folder) as said, _StderrTo(said.fileno()):
        code = compiler.run_main([argument.encode() for argument in arguments])
        said.seek(0)
        words = said.read(64 << 10).decode(errors="replace")
    if code != 0:
        raise SchemaUnusable(f"it is not compiled: {words.replace(f'{sources}/', '').strip()[:_MOST_WORDS]}")


NEEDS = "Protobuf from .proto text needs grpcio-tools: pip install 'sluicegate[rules]'"


def write_sources(folder: Path, texts: Mapping[str, str]) -> None:
    """Write each text to a file of its name. Raises OSError, and SchemaUnusable if a name leads out of the folder."""
    for name, text in texts.items():
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\0" in name or not pure.parts:
            raise SchemaUnusable(f"it imports {name[:100]}, which is no name below its own folder")
        path = folder / pure
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class _StderrTo:
    """A context in which C++ code's standard error is redirected."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> None:
        self._before = os.dup(_STDERR)
        os.dup2(self._descriptor, _STDERR)

    def __exit__(self, *_: object) -> None:
        os.dup2(self._before, _STDERR)
        os.close(self._before)


_SECONDS = 10


def descriptor_set_of(name: str, text: str, imports: Mapping[str, str]) -> bytes:
    """Return the descriptor set of `text` and of its imports (texts by imported name). Raises SchemaUnusable."""
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
    """Return the descriptor set of a .proto file, which may import files from its folder. Raises SchemaUnusable."""
    _need_compiler()
    return _compiled(path.resolve().parent, path.name)


def _compiled(folder: Path, name: str) -> bytes:
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={folder}", "--include_imports"]
    command += ["--descriptor_set_out=/dev/stdout", name]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603  # our own names
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
