"""Runs the Protobuf compiler that grpcio-tools brings within this process, which can be stopped."""

import os
from collections.abc import Mapping
from importlib import import_module, resources
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile

from sluicegate.validation.rules.schemas.content import SchemaUnusable

OWN_NAME = "registered-schema.proto"
DESCRIPTOR_SET = "descriptor-set"
_STDERR = 2
_MOST_WORDS = 300


def write_descriptor_set(folder: str, text: str, imports: Mapping[str, str]) -> None:
    """Compile `text` into the file DESCRIPTOR_SET of `folder`. `imports`: by the names that the text has for them.

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
    """Write each under its name. Raises SchemaUnusable where a name leads out of the folder, and OSError."""
    for name, text in texts.items():
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\0" in name or not pure.parts:
            raise SchemaUnusable(f"it imports {name[:100]}, which is no name below its own folder")
        path = folder / pure
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class _StderrTo:
    """Within it, what C++ writes to standard error goes elsewhere."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> None:
        self._before = os.dup(_STDERR)
        os.dup2(self._descriptor, _STDERR)

    def __exit__(self, *_: object) -> None:
        os.dup2(self._before, _STDERR)
        os.close(self._before)
