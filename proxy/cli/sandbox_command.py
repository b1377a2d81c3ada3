"""The command `sandbox`, which runs a Kafka endpoint for the tests of producers. It imports its own dependencies."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluicegate.config.loading import ConfigError
from sluicegate.config.values.address import HostPort, parse_host_port
from sluicegate.proxy.cli.console import HELP, end, print_line, print_lines, print_whole

if TYPE_CHECKING:
    from sluicegate.proxy.sandbox.running import SandboxResult

_USAGE = 2

commands = typer.Typer()


@commands.command(context_settings=HELP)
def sandbox(
    config: Annotated[
        Path,
        typer.Option(
            metavar="PATH",
            help=(
                "The configuration with the policies, or a folder that contains a sluicegate.yaml. The sandbox creates "
                "the topics of the folder's *.test.yaml files."
            ),
        ),
    ],
    upstream: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT", help="Address of a disposable broker. May be repeated. Default: a mock cluster."
        ),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Bootstrap address for clients. The next port serves the report, and brokers use the "
            "ports after that.",
        ),
    ] = "127.0.0.1:0",
    topics: Annotated[
        list[str] | None, typer.Option(metavar="NAME,…", help="Topics to create. May be repeated.")
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC=CODE",
            help=(
                "A violation that does not fail the run: a topic or a pattern, and a reason's code or a rule's name. "
                "May be repeated."
            ),
        ),
    ] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as JUnit XML.")] = None,
    sarif: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as SARIF 2.1.0.")] = None,
    github: Annotated[bool, typer.Option("--github", help="Print annotations for GitHub Actions.")] = False,
    stop_with_stdin: Annotated[
        bool,
        typer.Option(
            "--stop-with-stdin", help="Also stop when standard input ends, for example because the caller was killed."
        ),
    ] = False,
) -> None:
    """Run a Kafka endpoint with the policies of a configuration, for the tests of a producer, until SIGTERM or Ctrl-C.
    Exit status: 0 if no batch was rejected, 1 if one was, 2 if the sandbox cannot start.
    """
    try:
        from sluicegate.proxy.sandbox.running import SandboxOptions, run_sandbox  # needs the extra `demo` or `topic`
    except ModuleNotFoundError as error:
        end([f"sluicegate: the sandbox needs {error.name}: pip install 'sluicegate[topic]'"], _USAGE)
    from sluicegate.config.model import Log
    from sluicegate.proxy.reporting.logs.setup import set_up_logging
    from sluicegate.proxy.sandbox.policies import configuration_in
    from sluicegate.proxy.sandbox.violations import BadAllowance
    from sluicegate.proxy.server.startup import CannotStart

    set_up_logging(Log(level="error"))
    try:
        file = configuration_in(config)
        options = SandboxOptions(
            file,
            _address("--listen", listen),
            tuple(_address("--upstream", each) for each in upstream or ()),
            (*_tested_topics(config), *_names(topics)),
            tuple(allow or ()),
            stop_with_stdin,
        )
        result = run_sandbox(options, os.environ, print_line)
    except BadAllowance as error:
        end([f"sluicegate: --allow {error}"], _USAGE)
    except CannotStart as error:
        end([f"sluicegate: {error}"], _USAGE)
    except ConfigError as error:
        end([str(problem) for problem in error.problems], _USAGE)
    _report(result, file, junit, sarif, github)
    raise typer.Exit(1 if result.violations.failures else 0)


def _report(result: "SandboxResult", file: Path, junit: Path | None, sarif: Path | None, github: bool) -> None:
    from sluicegate.proxy.sandbox import report_files, report_lines

    violations = result.violations
    print_lines(report_lines.lines_of(violations, result.accepted_records))
    if github:
        for annotation in report_lines.annotations_of(violations):
            print_whole(annotation)
    _write("--junit", junit, report_files.junit(violations))
    _write("--sarif", sarif, report_files.sarif(violations, file))


def _write(option: str, path: Path | None, content: bytes) -> None:
    """Write the file of an option, if it is given. A failure ends the command."""
    if path is not None:
        try:
            path.write_bytes(content)
        except OSError as error:
            end([f"sluicegate: {option} {path} cannot be written: {error.strerror}"], _USAGE)


def _address(option: str, text: str) -> HostPort:
    """Return the address that an option names. An invalid address ends the command."""
    try:
        return parse_host_port(text)
    except ValueError as error:
        end([f"sluicegate: {option}: {error}"], _USAGE)


def _names(given: list[str] | None) -> Iterator[str]:
    """Yield the names of topics. An impossible name ends the command."""
    from sluicegate.protocol.topic_name import is_legal_topic_name

    for name in (name.strip() for each in given or () for name in each.split(",") if name.strip()):
        if not is_legal_topic_name(name):
            end([f"sluicegate: --topics: no topic can be named {name}"], _USAGE)
        yield name


def _tested_topics(folder: Path) -> list[str]:
    """Return the topics of the test cases in a folder. Raises ConfigError."""
    from sluicegate.proxy.cli.policy_cases import case_files
    from sluicegate.proxy.cli.policy_tests import topics_of

    files = case_files([folder]) if folder.is_dir() else []
    return list(dict.fromkeys(topic for file in files for topic in topics_of(file)))
