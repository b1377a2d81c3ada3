"""Finds sentences that native engineers would not write, in pages, docstrings, comments and messages.

    python -m tests.structure.prose [PATH ...] [--show N]

prints one line for each path (by default each top-level folder): how many of its sentences match a pattern. `--show`
also prints up to N of them. A match is a place to read again, not an error; a text without a match can still be
unclear.
"""

import argparse
import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.oracle.kafka_java import ROOT

_SUBJECT_VERBS = (
    "is|are|was|has|have|had|may|can|does|do|only|comes?|sends?|gives?|asks?|reads?|looks?|wants?|says?|writes?|knows?|"
    "owns?|waits?|ends?|needs?|runs?|brings?|takes?|fetches|serves|measures|claims|stands?|lies|breaks?|holds?|"
    "follows?|leaves?|it|they|goes|fails|begins|costs|happens to|becomes"
)
PATTERNS = {
    name: re.compile(pattern, re.MULTILINE)
    for name, pattern in {
        "who or what as the subject": (
            r"(?:^|(?<=[.:;,(] )|(?<=\bby )|(?<=\bfor )|(?<=\bto )|(?<=\bof )|(?<=\bwith ))"
            rf"(?:[Ww]ho|[Ww]hoever|[Ww]hat|[Ww]hatever) (?:{_SUBJECT_VERBS})\b"
        ),
        "tell for report": r"\b(?:told|tells?|is telling)\b",
        "stand or lie for be": r"\b(?:stands?|stood|lies?|lay)\b(?!-in\b| (?:in for|for Kafka))",
        "go on, come to": r"\b(?:goes on|go on|going on|comes? to (?:its|the|an) end|comes? to)\b",
        "archaic word": r"\b(?:anew|as ever|shall|mend(?:ed|s|ing)?|dear for|nobody|whom|whose)\b",
        "behind for after": (r"\bbehind (?!the proxy|a proxy|it a|load balancers|a load balancer|NAT)"),
        "where for if": (
            r"(?:^|[.;:] )Where (?!to\b|it is\b|is\b|are\b|the\b.*\?)|, where (?:it|that|they|one|there|a|an|no)\b"
        ),
        "one that, those that": r"\b(?:[Oo]ne|[Tt]hose|[Tt]hat) (?:that|of (?:which|whom)|who)\b",
        "circumlocution": (
            r"\b(?:put right|puts? (?:times|things) right|has it|have it|had it|is to be|are to be|has to be said|"
            r"as far as)\b"
        ),
        "hold for apply": r"\b(?:[Ww]hat holds|that hold|holds for|rules hold|holds it to|held to)\b",
    }.items()
}
_CODE = re.compile(r"`[^`]*`")
_SKIPPED_FOLDERS = {"__pycache__", "node_modules"}
_PROSE = {".md", ".py", ".pyx", ".pxd", ".js", ".html", ".yaml", ".yml"}


@dataclass(frozen=True)
class Sentence:
    path: str  # relative to the root of the repository
    line: int
    text: str

    @property
    def patterns(self) -> list[str]:
        """Return the names of the patterns that the sentence matches."""
        return [name for name, pattern in PATTERNS.items() if pattern.search(self.text)]


def files_of(place: str) -> list[Path]:
    """Return the files with prose in a folder, in order. For `.` these are the files at the root, for a file only
    itself."""
    start = ROOT / place
    if start.is_file():
        return [start]
    if start == ROOT:
        found = list(start.iterdir())
    else:
        found = [Path(folder, name) for folder, _folders, names in _walk(start) for name in names]
    return sorted(path for path in found if path.suffix in _PROSE and path.is_file() and not path.is_symlink())


def places_with_prose() -> list[str]:
    """Return the top-level folders with prose, and `.` for the files at the root."""
    folders = (path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "build")))
    return [".", *sorted(name for name in folders if files_of(name))]


@cache
def sentences_of(place: str) -> list[Sentence]:
    """Yield the sentences of more than three words in a folder or file; see `files_of`."""
    return [
        Sentence(str(path.relative_to(ROOT)), line, text)
        for path in files_of(place)
        for line, text in sentences_in(path.read_text(encoding="utf-8", errors="replace"), path.suffix)
    ]


def sentences_in(text: str, suffix: str) -> Iterator[tuple[int, str]]:
    """Yield each sentence of a file's text with its line; `suffix` names the language, such as `.py`."""
    if suffix == ".md":
        yield from _of_markdown(text)
    elif suffix in (".py", ".pyx", ".pxd"):
        if suffix == ".py":
            yield from _of_literals(text)
        yield from _of_comments(text)
    else:
        yield from _of_messages(text)


def _walk(start: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    for folder, folders, names in os.walk(start):
        folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith(".")]
        yield folder, folders, names


def _of_markdown(text: str) -> Iterator[tuple[int, str]]:
    text = re.sub(r"```.*?```", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL)
    line = 1
    for block in re.split(r"(\n\s*\n)", text):
        if block.strip() and not block.lstrip().startswith(("|--", "<!--")):
            yield from _divided(_CODE.sub("CODE", block).replace("|", ". "), line)
        line += block.count("\n")


def _of_literals(text: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of docstrings, messages and other texts of a Python file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _divided(_CODE.sub("CODE", node.value), node.lineno)


def _of_comments(text: str) -> Iterator[tuple[int, str]]:
    for line, row in enumerate(text.split("\n"), 1):
        found = re.search(r"(?:^|\s)# (.*)", row)
        if found and not found[1].startswith(("type:", "noqa", "cython:")):
            yield from _divided(found[1], line)


def _of_messages(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments and quoted texts of JavaScript, HTML and YAML that begin with a capital letter."""
    for line, row in enumerate(text.split("\n"), 1):
        for piece in re.findall(r"(?:#|//|>|\"|'|`)\s*([A-Z][^\"'`<>]{15,})", row):
            yield from _divided(piece, line)


def _divided(block: str, line: int) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a block of text that begins at `line`."""
    flat = ""
    starts = []
    for number, row in enumerate(block.split("\n"), line):
        starts.append((len(flat), number))
        flat += f"{row.strip()} "
    begin = 0
    for end in re.finditer(r"(?<=[.!?:])\s+|$", flat):
        sentence = flat[begin : end.start()].strip()
        if len(sentence.split()) > 3:
            yield max(number for start, number in starts if start <= begin), sentence
        begin = end.end()


def main() -> None:
    parser = argparse.ArgumentParser(description="Find sentences that native engineers would not write.")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="files or folders; by default each top-level folder")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print up to N sentences of each path")
    options = parser.parse_args()
    for place in options.paths or places_with_prose():
        sentences = sentences_of(place.rstrip("/"))
        found = [sentence for sentence in sentences if sentence.patterns]
        print(f"{place}: {len(found)} of {len(sentences)} sentences ({len(found) / max(len(sentences), 1):.1%})")
        for sentence in found[: options.show]:
            print(f"  {sentence.path}:{sentence.line}: [{', '.join(sentence.patterns)}] {sentence.text[:200]}")


if __name__ == "__main__":
    main()
