"""The commands that check a cluster before a proxy is deployed. Each command imports its own dependencies."""

import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from sluicegate.config.files.source import Source
from sluicegate.config.loading import load
from sluicegate.config.model import Config
from sluicegate.proxy.cli.console import HELP, end, print_line, print_lines, read, read_file

_NOT_CHECKED = 2
_LISTEN = "127.0.0.1:19092"

commands = typer.Typer()


@commands.command(context_settings=HELP)
def doctor(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The configuration file.")],
    client_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A .properties file of a Kafka client. Its login replaces upstream.sasl."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check everything that a configuration depends on, and print how to fix each failure. Changes nothing.

    Exit status: 0 if nothing fails, 1 if a check fails, 2 if the cluster could not be checked.
    """
    import uvloop

    from sluicegate.proxy.doctor import report
    from sluicegate.proxy.doctor.examination import examine
    from sluicegate.proxy.reload.config_check import flaws_in, with_file_position

    loaded = read_file(config, _NOT_CHECKED)
    asked = loaded.config if client_config is None else _with_login_in(client_config, loaded.config)
    flaws = [with_file_position(flaw, loaded.source) for flaw in flaws_in(loaded.config)]
    examined = uvloop.run(examine(asked, flaws, loaded.source))
    if as_json:
        typer.echo(report.json_of(examined))
    elif sys.stdout.isatty() and find_spec("rich") is not None:  # rich belongs to the optional dependencies `demo`
        report.draw(examined)
        print_line(report.summary_of(examined))
    else:
        print_lines(report.lines_of(examined))
    raise typer.Exit(examined.exit_code)


@commands.command(context_settings=HELP)
def bootstrap(
    upstream: Annotated[
        str | None,
        typer.Argument(
            metavar="[UPSTREAM]", help="Address of a broker, HOST:PORT. Separate several addresses with commas."
        ),
    ] = None,
    client_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A .properties file of a Kafka client, with security.protocol, ssl.* and sasl.*."
        ),
    ] = None,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="The bootstrap address for clients.")] = _LISTEN,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write. Default: standard output.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=(
                "Create the missing topics of the section `state` of this configuration file, instead of writing "
                "a configuration. Prints the created topics, the settings that differ, and the ACLs. --client-config "
                "must have a login that may create topics."
            ),
        ),
    ] = None,
) -> None:
    """Read a cluster's topics and write a first configuration with their limits, in observe mode."""
    import uvloop

    if (upstream is None) == (state is None):
        end(["sluicegate bootstrap: specify either UPSTREAM or --state FILE"], _NOT_CHECKED)
    if state is not None:
        _create_state_topics(state, client_config)
        return

    from sluicegate.proxy.bootstrap.first_file import lines_of
    from sluicegate.proxy.bootstrap.survey import SurveyFailed, broker_list, survey

    if output is not None and output.exists():
        end([f"{output} already exists: choose another file name"], _NOT_CHECKED)
    access = {} if client_config is None else _access_in(client_config)
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
        counts = f"brokers {broker_list(found.brokers)}; {len(found.topics)} topics"
        print_line(f"{output}: {counts}; check it with: sluicegate doctor --config {output}")


def _create_state_topics(file: Path, client_config: Path | None) -> None:
    from sluicegate.proxy.bootstrap.state_topics import create_topics
    from sluicegate.proxy.state.topic_description import TopicUnavailable
    from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client

    config = read_file(file, _NOT_CHECKED).config
    if config.state is None:
        end([f"{file} has no section state"], _NOT_CHECKED)
    login = config if client_config is None else _with_login_in(client_config, config)
    try:
        check_client("state.topic")
        for line in create_topics(config, config.state, login.upstream):
            print_line(line)
    except (ClientMissing, TopicUnavailable) as error:
        end([f"sluicegate bootstrap: {error}"])


def _access_in(client_config: Path) -> dict[str, Any]:
    """Return the keys `tls` and `sasl` of `upstream` from a client's file. An unusable file ends the command."""
    from sluicegate.proxy.bootstrap.client_settings import UnusableClientSettings, upstream_from

    try:
        return upstream_from(client_config)
    except UnusableClientSettings as error:
        end([f"{client_config}: {error}"], _NOT_CHECKED)


def _with_login_in(client_config: Path, config: Config) -> Config:
    """Return the configuration with a client's login as the proxy's own login."""
    access = _access_in(client_config)
    if "sasl" not in access:
        end([f"{client_config} has no login: its security.protocol is not SASL_PLAINTEXT or SASL_SSL"], _NOT_CHECKED)
    bootstrap = [str(address) for address in config.upstream.bootstrap]
    given = {"upstream": {"bootstrap": bootstrap, "sasl": access["sasl"]}, "listen": {"bootstrap": _LISTEN}}
    own = read(lambda: load(Source("command line", given), {}), code=_NOT_CHECKED).config.upstream.sasl
    return replace(config, upstream=replace(config.upstream, sasl=own))
