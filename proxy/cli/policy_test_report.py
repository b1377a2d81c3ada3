"""Reports the results of test cases as lines for people and as a JUnit file for CI."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as Xml  # this module only writes XML

from sluicegate.config.files.source import printable
from sluicegate.proxy.cli.policy_tests import FileResults, Result

_WIDTH = 80


def lines_of(files: Sequence[FileResults]) -> Iterator[str]:
    """Yield a line for each file, the failed cases with their differences, and a summary."""
    for file in files:
        marks = "".join("F" if result.problems else "." for result in file.results)
        yield f"{file.name} {marks}"
    failed = [result for file in files for result in file.results if result.problems]
    if failed:
        yield _title(" failures ", "=")
    for result in failed:
        yield _title(f" {result.name} ", "_")
        yield from (f"{result.place}: {problem}" for problem in result.problems)
        yield from (f"  {line}" for line in result.found)
    if failed:
        yield _title(" summary ", "=")
        yield from (f"FAILED {result.place} {result.name}" for result in failed)
    count = sum(len(file.results) for file in files)
    seconds = sum(result.seconds for file in files for result in file.results)
    passed = f"{count - len(failed)} passed in {seconds:.2f} s"
    yield f"{len(failed)} failed, {passed}" if failed else passed


def write_junit(files: Sequence[FileResults], path: Path) -> None:
    """Write the results as JUnit XML. Raises OSError."""
    root = Xml.Element("testsuites", _counts([result for file in files for result in file.results]))
    for file in files:
        suite = Xml.SubElement(root, "testsuite", {"name": printable(file.name), **_counts(file.results)})
        for result in file.results:
            case = Xml.SubElement(
                suite,
                "testcase",
                {
                    "classname": printable(file.name),
                    "name": printable(result.name),
                    "file": printable(file.name),
                    "line": result.place.rpartition(":")[2],
                    "time": f"{result.seconds:.6f}",
                },
            )
            if result.problems:
                failure = Xml.SubElement(case, "failure", {"message": printable("; ".join(result.problems))})
                failure.text = "\n".join(map(printable, (*result.problems, *result.found)))
    Xml.indent(root)
    path.write_bytes(Xml.tostring(root, "utf-8", xml_declaration=True))


def _counts(results: Sequence[Result]) -> dict[str, str]:
    return {
        "tests": str(len(results)),
        "failures": str(sum(bool(result.problems) for result in results)),
        "errors": "0",
        "time": f"{sum(result.seconds for result in results):.6f}",
    }


def _title(words: str, char: str) -> str:
    return words.center(_WIDTH, char)
