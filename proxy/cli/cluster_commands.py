"""The commands that check a cluster before a proxy is deployed. Each command imports its own dependencies."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from sluicegate.config.loading import load
from sluicegate.config.source import Source
from sluicegate.proxy.cli.console import HELP, end, print_line, print_lines, read, read_file

_NOT_CHECKED = 2
_LISTEN = "127.0.0.1:19092"

commands = typer.Typer()


@commands.command(context_settings=HELP)
def doctor(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The configuration file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check everything that a configuration depends on, and print how to fix each failure. Reads only.

    Exit 0: no failure; 1: a failure; 2: the cluster could not be checked.
    """
    import uvloop  # noqa: PLC0415

    from sluicegate.proxy.doctor import report  # noqa: PLC0415
    from sluicegate.proxy.doctor.examination import examine  # noqa: PLC0415
    from sluicegate.proxy.reload.config_check import flaws_in  # noqa: PLC0415

    loaded = read_file(config, _NOT_CHECKED)
    examined = uvloop.run(examine(loaded.config, list(flaws_in(loaded.config))))
    if as_json:
        typer.echo(report.json_of(examined))
    elif sys.stdout.isatty() and find_spec("rich") is not None:  # of the extra `demo`
        report.draw(examined)
        print_line(report.summary_of(examined))
    else:
        print_lines(report.lines_of(examined))
    raise typer.Exit(examined.exit_code)


@commands.command(context_settings=HELP)
def bootstrap(
    upstream: Annotated[
        str, typer.Argument(metavar="UPSTREAM", help="HOST:PORT of a broker; several separated by commas.")
    ],
    client_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A client's .properties file with security.protocol, ssl.* and sasl.*."),
    ] = None,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="The bootstrap address for clients.")] = _LISTEN,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write; default: standard output.")
    ] = None,
) -> None:
    """Read a cluster's topics and write a first configuration with their limits, in observe mode."""
    import uvloop  # noqa: PLC0415

    from sluicegate.proxy.bootstrap.client_settings import UnusableClientSettings, upstream_from  # noqa: PLC0415
    from sluicegate.proxy.bootstrap.first_file import lines_of  # noqa: PLC0415
    from sluicegate.proxy.bootstrap.survey import SurveyFailed, listed, survey  # noqa: PLC0415

    if output is not None and output.exists():
        end([f"{output} already exists: choose another file name"], _NOT_CHECKED)
    try:
        access = upstream_from(client_config) if client_config is not None else {}
    except UnusableClientSettings as error:
        end([f"{client_config}: {error}"], _NOT_CHECKED)
    given = Source("command line", {"upstream": {"bootstrap": upstream, **access}, "listen": {"bootstrap": listen}})
    config = read(lambda: load(given, {}), code=_NOT_CHECKED).config
    try:
        found = uvloop.run(survey(config.upstream))
    except SurveyFailed as error:
        end([f"sluicegate bootstrap: {error}"], _NOT_CHECKED)
    lines = list(lines_of(found, config.upstream.bootstrap, access, config.listen.bootstrap))
    if output is None:
        for line in lines:
            typer.echo(line)
    else:
        output.write_text("\n".join(lines) + "\n")
        counts = f"brokers {listed(found.brokers)}; {len(found.topics)} topics"
        print_line(f"{output}: {counts}; check it with: sluicegate doctor --config {output}")
