"""Files, modules, names and make commands in pages, comments and docstrings exist."""

import importlib
import re
from types import ModuleType

from tests.oracle.kafka_java import ROOT

_OURS = "config|dead_letters|pipeline|protocol|proxy|validation"
_ROOMS = f"bench|docs|tests|{_OURS}"
_FILE = re.compile(rf"(?<![\w./-])((?:{_ROOMS})/[\w./-]+\.(?:py|pxd|md|json|java|pyi|yaml))\b")
_MADE_FILE = re.compile(r"^# new file: (\S+)$", re.MULTILINE)
"""Files that a worked example creates do not exist yet (tests/docs/test_extensions.py)."""
_SYMBOL = re.compile(rf"`((?:bench|tests|sluicegate\.(?:{_OURS}))(?:\.\w+)+)(?:\(\))?`")
_COMMAND = re.compile(r"`make ([a-z][a-z-]*)\b(?!/)")
_TARGET = re.compile(r"^([a-z][a-z -]*):", re.MULTILINE)
_PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
_SOURCES = [
    file
    for room in ("bench", "config", "dead_letters", "pipeline", "protocol", "proxy", "tests", "validation")
    for file in (ROOT / room).rglob("*")
    if file.suffix in (".py", ".pxd")
]


def test_every_file_named_in_pages_and_sources_exists() -> None:
    missing = {
        f"{file.relative_to(ROOT)} names {name}"
        for file in (*_PAGES, *_SOURCES)
        for text in (file.read_text(),)
        for name in {*_FILE.findall(text)} - {*_MADE_FILE.findall(text)}
        if not (ROOT / name).exists() and not (file.parent / name).exists()
    }
    assert missing == set()


def test_every_symbol_named_in_pages_and_sources_exists() -> None:
    named = {(file, name) for file in (*_PAGES, *_SOURCES) for name in _SYMBOL.findall(file.read_text())}
    missing = {f"{file.relative_to(ROOT)} names {name}" for file, name in named if not _is_there(name)}
    assert len(named) > 20
    assert missing == set()


def test_every_make_command_named_in_pages_and_sources_exists() -> None:
    targets = {name for names in _TARGET.findall((ROOT / "Makefile").read_text()) for name in names.split()}
    named = {(file, name) for file in (*_PAGES, *_SOURCES) for name in _COMMAND.findall(file.read_text())}
    missing = {f"{file.relative_to(ROOT)} names `make {name}`" for file, name in named if name not in targets}
    assert len(named) > 20
    assert missing == set()


def _is_there(name: str) -> bool:
    """Return whether the name is that of a module or of an object in a module."""
    parts = name.split(".")
    if parts[-1] in ("py", "md"):
        return True  # another test checks that files exist
    for count in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:count])
        if place.with_suffix(".pyx").exists():
            return True  # a native module does not exist without a compiler
        if place.is_dir() or place.with_suffix(".py").exists():
            found: ModuleType | object = importlib.import_module(".".join(parts[:count])) if parts[count:] else None
            for part in parts[count:]:
                if not hasattr(found, part):
                    return False
                found = getattr(found, part)
            return True
    return False
