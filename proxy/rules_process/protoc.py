"""Runs grpcio-tools' Protobuf compiler in the rules process, which can be stopped, or in a separate process."""

import errno
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module, resources
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory, TemporaryFile

from sluicegate.config.values.extras import RULES_EXTRA
from sluicegate.validation.rules.protobuf.registry_text import (
    encoded_file,
    with_edition_advice,
    with_map_entries,
    with_marked_map_entries,
)
from sluicegate.validation.rules.schemas.content import SchemaUnusable

OWN_NAME = "registered-schema.proto"
DESCRIPTOR_SET = "descriptor-set"
NEEDS = f"Protobuf from .proto text needs grpcio-tools: {RULES_EXTRA}"
_ENCODED = "encoded-files"
_SOURCES = "sources"
_STDERR = 2
# Errors about file names, which come from a schema. All other errors come from this machine.
_OF_NAMES = frozenset(
    {errno.ENAMETOOLONG, errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.EINVAL, errno.EILSEQ, errno.ELOOP}
)
_MOST_OUTPUT = 64 << 10
_MOST_WORDS = 300
_SECONDS = 10
# The packages whose files serializers do not register (googleapis-common-protos).
_OF_PACKAGES = ("google.api", "google.rpc", "google.type")


def write_descriptor_set(folder: str, text: str, imports: Mapping[str, str]) -> None:
    """Compile `text` into the file DESCRIPTOR_SET in `folder`.

    `imports` maps the names that `text` imports to their sources. Raises SchemaUnusable and OSError.
    """
    try:
        compiler = import_module("grpc_tools._protoc_compiler")
    except ImportError:
        raise SchemaUnusable(NEEDS) from None
    made = Path(folder) / DESCRIPTOR_SET
    arguments = ["protoc", *_inputs(Path(folder), {**imports, OWN_NAME: text})]
    arguments += [f"--proto_path={resources.files('grpc_tools') / '_proto'}"]
    arguments += ["--include_imports", f"--descriptor_set_out={made}", OWN_NAME]
    with TemporaryFile(dir=folder) as output, _StderrTo(output.fileno()):
        code = compiler.run_main([argument.encode() for argument in arguments])
        output.seek(0)
        words = output.read(_MOST_OUTPUT).decode(errors="replace")
    if code != 0:
        raise SchemaUnusable(f"the schema cannot be compiled: {_errors_of(words, Path(folder) / _SOURCES)}")
    made.write_bytes(with_map_entries(made.read_bytes()))


def descriptor_set_of(name: str, text: str, imports: Mapping[str, str]) -> bytes:
    """Return the descriptor set of `text` and its imports.

    `imports` maps imported names to their sources. Raises SchemaUnusable.
    """
    _need_compiler()
    try:
        with TemporaryDirectory(prefix="sluicegate-proto-") as folder:
            inputs = _inputs(Path(folder), {**imports, name: text})
            return with_map_entries(_compiled(inputs, Path(folder) / _SOURCES, name))
    except OSError as error:
        raise SchemaUnusable(
            f"the schema is compiled in the folder for temporary files (TMPDIR), which cannot be used: {error.strerror}"
        ) from error


def descriptor_set_of_file(path: Path) -> bytes:
    """Return a .proto file's descriptor set. The file may import others from its folder. Raises SchemaUnusable."""
    _need_compiler()
    folder = path.resolve().parent
    return _compiled([f"--proto_path={folder}", *_well_known()], folder, path.name)


def sources_of(descriptor_set: bytes, path: Path) -> tuple[Path, ...]:
    """Return the path of the .proto file, and those of the files in its folder that its descriptor set includes."""
    files = import_module("google.protobuf.descriptor_pb2").FileDescriptorSet.FromString(descriptor_set)
    folder = path.resolve().parent
    imported = (folder / file.name for file in files.file if file.name != path.name)
    return (path, *(file for file in imported if file.exists()))


def _inputs(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """Write schemas below `folder`. Return the compiler's arguments for them and for the well-known files.

    Raises OSError, and SchemaUnusable if a name points outside the folder.
    """
    encoded = {name: file for name, text in texts.items() if (file := encoded_file(name, text)) is not None}
    _write_sources(
        folder / _SOURCES,
        {name: with_marked_map_entries(text) for name, text in texts.items() if name not in encoded},
    )
    if not encoded:
        return [f"--proto_path={folder / _SOURCES}", *_well_known()]
    files = import_module("google.protobuf.descriptor_pb2").FileDescriptorSet()
    for file in encoded.values():
        files.file.add().ParseFromString(file)
    (folder / _ENCODED).write_bytes(files.SerializeToString())
    return [f"--proto_path={folder / _SOURCES}", *_well_known(folder / _ENCODED)]


def _write_sources(folder: Path, texts: Mapping[str, str]) -> None:
    """Write each source to the file that its name gives.

    Raises OSError, and SchemaUnusable if a name points outside the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\0" in name or not pure.parts:
            raise SchemaUnusable(f"the schema imports {name[:100]}, which is not below its own folder")
        try:
            path = folder / pure
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except UnicodeEncodeError:
            raise SchemaUnusable("a name or a text has half of a surrogate pair, which is no UTF-8") from None
        except OSError as error:
            if error.errno not in _OF_NAMES:
                raise
            why = f"the imports cannot be files in one folder: {name[:100]}: {error.strerror}"
            raise SchemaUnusable(why) from None


def _well_known(*descriptor_sets: Path) -> list[str]:
    """Return the compiler's arguments for the files that schemas import without a reference.

    They follow the arguments for `descriptor_sets`.
    """
    imports = resources.files("sluicegate.validation.rules.protobuf") / "imports"
    arguments = [f"--proto_path={imports}"]
    all_sets = (*descriptor_sets, imports / "validate.binpb")  # the compiler uses only the last such option
    arguments.append(f"--descriptor_set_in={os.pathsep.join(map(str, all_sets))}")
    for package in _OF_PACKAGES:
        found = _spec_of(package)
        arguments += [f"--proto_path={package.replace('.', '/')}={place}" for place in found]
    return arguments


def _spec_of(package: str) -> list[str]:
    """Return a package's folders, or none if it is not installed."""
    try:
        found = find_spec(package)
    except ModuleNotFoundError:  # the parent package is missing
        return []
    return [] if found is None else list(found.submodule_search_locations or ())


def _errors_of(words: str, folder: Path) -> str:
    """Return protoc's errors without its warnings, which come first and may be many."""
    lines = words.replace(f"{folder}/", "").splitlines()
    errors = [line for line in lines if line.strip() and not _is_warning(line)]
    return with_edition_advice("\n".join(errors or lines).strip()[:_MOST_WORDS])


def _is_warning(line: str) -> bool:
    # The library's own log lines begin with "WARNING:", or with "W", four digits of a date, and a time.
    return ": warning: " in line or line.startswith(("WARNING:", "[libprotobuf WARNING")) or _is_log_line(line)


def _is_log_line(line: str) -> bool:
    return line[:1] == "W" and line[1:5].isdigit()


class _StderrTo:
    """A context manager that redirects the standard error of C++ code."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> None:
        self._before = os.dup(_STDERR)
        os.dup2(self._descriptor, _STDERR)

    def __exit__(self, *_: object) -> None:
        os.dup2(self._before, _STDERR)
        os.close(self._before)


def _compiled(inputs: list[str], folder: Path, name: str) -> bytes:
    command = [sys.executable, "-m", "grpc_tools.protoc", *inputs, "--include_imports"]
    command += ["--descriptor_set_out=/dev/stdout", name]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603  # own names
    except subprocess.TimeoutExpired:
        raise SchemaUnusable(f"the schema was not compiled within {_SECONDS} s") from None
    except OSError as error:
        raise SchemaUnusable(f"the compiler does not start: {error.strerror}") from error
    if done.returncode != 0:
        words = done.stderr[:_MOST_OUTPUT].decode(errors="replace")
        raise SchemaUnusable(f"the schema cannot be compiled: {_errors_of(words, folder)}")
    return done.stdout


def _need_compiler() -> None:
    if find_spec("grpc_tools") is None:
        raise SchemaUnusable(NEEDS)
