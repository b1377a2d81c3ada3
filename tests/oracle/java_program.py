"""Java programs: classes of a folder of jars, or a single source file of ours compiled against them."""

import hashlib
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.oracle.kafka_java import ROOT

# What runs for seconds is not worth the second compiler, nor several threads that collect garbage.
SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_COMPILED = ROOT / "build" / "java"


def java_command(jars: Path, program: str, options: Sequence[str] = SHORT_LIVED) -> list[str]:
    """What starts `program`, a class of those jars or the path of a source file; its arguments go behind."""
    places = [f"{jars.resolve()}/*"]  # an archive is for the very same path
    if program.endswith(".java"):
        source = Path(program)
        places.append(str(compiled(jars, source)))
        program = source.stem
    return ["java", *from_archive(jars), *options, "-cp", ":".join(places), program]


def from_archive(jars: Path) -> list[str]:
    """The options to start from the archive of these jars, where there is one. Quietly: a tool's output is read, and
    an archive that does not fit is only slower.
    """
    archive = archive_of(jars)
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"] if archive.exists() else []


def said_by(command: Sequence[str], stdin: str = "") -> str:
    """What a Java program printed before it ended well."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def archive_of(jars: Path) -> Path:
    """Where the classes of these jars are kept as Java has them in memory (tests/broker/class_archive.py)."""
    return jars.resolve().with_name(f"{jars.resolve().name}.jsa")


def compiled(jars: Path, source: Path) -> Path:
    """The folder of a source file's classes. `java FILE.java` would compile it at each start, which takes longer than
    most of what it does.
    """
    written = hashlib.sha256(f"{jars.resolve()}\0{source.read_text()}".encode()).hexdigest()
    folder = _COMPILED / f"{source.stem}-{written[:12]}"
    if not folder.exists():
        _COMPILED.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=_COMPILED) as made:
            command = ["javac", "-J-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", "-d", f"{made}/classes", str(source)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            with suppress(OSError):  # tests beside these were first
                Path(made, "classes").rename(folder)
    return folder
