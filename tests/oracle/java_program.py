"""Runs Java programs: classes in a folder of jars, or one of our source files compiled against them."""

import hashlib
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.oracle.kafka_java import ROOT

# A short run does not need the second compiler or a parallel garbage collector.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_COMPILED = ROOT / "build" / "java"


def java_command(jars: Path, program: str, options: Sequence[str] = SHORT_LIVED) -> list[str]:
    """Return the command for `program`, a class of the jars or the path of a source file; append its arguments."""
    places = [f"{jars.resolve()}/*"]  # an archive requires the same class path
    if program.endswith(".java"):
        source = Path(program)
        places.append(str(compiled(jars, source)))
        program = source.stem
    return ["java", *class_archive_options(jars), *options, "-cp", ":".join(places), program]


def class_archive_options(jars: Path) -> list[str]:
    """Return the options to start from the class archive of these jars, if there is one. Warnings are off, because
    tests read the output, and an archive that does not match is only slower.
    """
    archive = class_archive_path(jars)
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"] if archive.exists() else []


def run_java(command: Sequence[str], stdin: str = "") -> str:
    """Run a Java program and return its output. Raises AssertionError if it fails."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def class_archive_path(jars: Path) -> Path:
    """Return the path of the class archive of these jars (tests/broker/class_archive.py)."""
    return jars.resolve().with_name(f"{jars.resolve().name}.jsa")


def compiled(jars: Path, source: Path) -> Path:
    """Compile a source file and return the folder of its classes. `java FILE.java` would compile it at each start,
    which takes longer than most runs.
    """
    written = hashlib.sha256(f"{jars.resolve()}\0{source.read_text()}".encode()).hexdigest()
    folder = _COMPILED / f"{source.stem}-{written[:12]}"
    if not folder.exists():
        _COMPILED.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=_COMPILED) as made:
            command = ["javac", "-J-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", "-d", f"{made}/classes", str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            with suppress(OSError):  # another test process has created the archive
                Path(made, "classes").rename(folder)
    return folder
