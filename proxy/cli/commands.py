"""The command `sluicegate`. Each subcommand imports its own dependencies, so that all of them start quickly."""

import os
from pathlib import Path
from typing import Annotated

import typer

from sluicegate.config.files.source import Source
from sluicegate.config.loading import ConfigError, Option, load
from sluicegate.proxy.cli import (
    change_commands,
    cluster_commands,
    fleet_command,
    policy_commands,
    sandbox_command,
    watch_commands,
)
from sluicegate.proxy.cli.console import HELP, end, print_line, print_lines, read, read_file
from sluicegate.proxy.cli.contracts import contracts
from sluicegate.proxy.cli.dead_letters import dead_letters

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=HELP,
    help="A Kafka-protocol proxy that validates what producers write before a broker stores it.",
)

_Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="The configuration file.")]
_Upstream = Annotated[
    list[str] | None,
    typer.Option("--upstream", metavar="HOST:PORT", help="Address of a broker to bootstrap from. May be repeated."),
]
_Listen = Annotated[str | None, typer.Option("--listen", metavar="HOST:PORT", help="Bootstrap address for clients.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Like the command `version`.")
    ] = False,
) -> None: ...


@app.command(context_settings=HELP)
def run(config: _Config = None, upstream: _Upstream = None, listen: _Listen = None) -> None:
    """Run the proxy until SIGTERM or Ctrl-C. Options and environment variables SLUICEGATE__… override the file."""
    from sluicegate.proxy.network.tls.certificates import Severity
    from sluicegate.proxy.registry.schema_files import SchemaFiles
    from sluicegate.proxy.reload.config_check import flaws_in, problem_of
    from sluicegate.proxy.reload.config_file import ConfigFile

    options = _options_of(upstream, listen)
    file = ConfigFile(config, options) if config is not None else None
    if file is None:
        loaded = read(lambda: load(Source("command line"), os.environ, options), {"upstream", "listen"})
    else:
        loaded = read(file.read)
    flaws = list(flaws_in(loaded.config, SchemaFiles(loaded.source.schemas)))
    unusable = [str(problem_of(flaw, loaded.source)) for flaw in flaws if flaw.level is Severity.UNUSABLE]
    if unusable:
        end(unusable)
    warnings = [*loaded.warnings, *(str(problem_of(flaw, loaded.source)) for flaw in flaws)]
    from sluicegate.proxy.network.inherited_sockets import BadSocket, inherited_sockets
    from sluicegate.proxy.reporting.logs.setup import log_warnings, queued_logging
    from sluicegate.proxy.server.startup import CannotStart
    from sluicegate.proxy.workers.running import run_until_signal

    try:
        with queued_logging(loaded.config.log):
            log_warnings(warnings)
            run_until_signal(loaded, file, inherited_sockets(os.environ, os.getpid()))
    except (CannotStart, BadSocket) as error:
        end([f"sluicegate: {error}"])


@app.command(context_settings=HELP)
def check(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="The configuration file.")] = None,
    config: _Config = None,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME", help="Also print this topic's policy. May be repeated."),
    ] = None,
    registry: Annotated[
        bool,
        typer.Option(
            "--registry", help="Also compile the newest schema of each subject that a rule or a sensitive field uses."
        ),
    ] = False,
    cluster: Annotated[
        bool,
        typer.Option(
            "--cluster",
            help=(
                "Also compare the configuration with the topics of the cluster, as doctor does: entries that "
                "match no topic, limits, permissions."
            ),
        ),
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if there are warnings. For CI.")] = False,
) -> None:
    """Check a configuration and the files that it names. If there are errors, print each with its key
    and line, and exit with 1.
    """
    chosen = file or config
    if chosen is None or (file is not None and config is not None):
        raise typer.BadParameter("specify the file to check: sluicegate check FILE")
    loaded = read_file(chosen)
    from sluicegate.proxy.reload.config_check import flaws_in, problem_of

    flaws = list(flaws_in(loaded.config))
    errors = [str(problem_of(flaw, loaded.source)) for flaw in flaws if flaw.is_error]
    warnings = [*loaded.warnings, *(str(problem_of(flaw, loaded.source)) for flaw in flaws if not flaw.is_error)]
    for warning in warnings:
        print_line(f"warning: {warning}")
    if errors:
        end(errors)
    if registry:
        from sluicegate.proxy.cli.registry_check import end_if_unusable

        end_if_unusable(loaded.config)
    count = len(warnings)
    if cluster:
        from sluicegate.proxy.cli.cluster_check import warn_about_cluster

        count += warn_about_cluster(loaded)
    for hint in loaded.hints:
        print_line(f"hint: {hint}")
    for name in topic or ():
        from sluicegate.proxy.reload.topic_explanation import explain

        print_lines(explain(name, loaded))
    if strict and count:
        end([f"{chosen}: {count} {'warning' if count == 1 else 'warnings'} (--strict)"])
    print_line(f"{chosen}: ok")


# The help lists the commands in this order.
for _group in (policy_commands, sandbox_command, cluster_commands, watch_commands, change_commands, fleet_command):
    app.registered_commands += _group.commands.registered_commands
app.add_typer(contracts, name="contract")
app.add_typer(dead_letters, name="dead-letters")


@app.command(context_settings=HELP)
def demo(
    seconds: Annotated[float | None, typer.Option(help="Stop after this many seconds.", min=0)] = None,
) -> None:
    """Run a demo: an embedded cluster, a proxy in front of it, and producers that send some bad records."""
    try:
        from sluicegate.proxy.demo.running import run_demo  # needs the optional dependencies `demo`
    except ModuleNotFoundError as error:
        end([f"sluicegate: the demo needs {error.name}: pip install 'sluicegate[demo]'"])
    from sluicegate.config.model import Log
    from sluicegate.proxy.reporting.logs.setup import set_up_logging
    from sluicegate.proxy.server.startup import CannotStart

    set_up_logging(Log(level="error"))
    try:
        run_demo(seconds)
    except CannotStart as error:
        end([f"sluicegate: {error}"])
    except ConfigError as error:  # an error in SLUICEGATE__… variables
        end([str(problem) for problem in error.problems])


@app.command(context_settings=HELP)
def healthcheck(config: _Config = None) -> None:
    """Check that the proxy at admin.listen of the configuration is alive. Exit status: 0 if it is, else 1."""
    from sluicegate.proxy.cli.health_check import admin_of, problem_at

    try:
        admin = admin_of(config, os.environ)
    except ConfigError as error:
        end([str(problem) for problem in error.problems])
    if admin.listen is None:
        print_line("admin.listen is not set: there is no admin endpoint to check")
        return
    problem = problem_at(admin.listen)
    if problem is not None:
        end([problem])
    print_line("alive")


@app.command(context_settings=HELP)
def version() -> None:
    """Print the version and commit of sluicegate, whether it is compiled, and the versions of the
    libraries that validation uses.
    """
    from sluicegate.proxy.cli import build_facts

    print_lines(build_facts.version_lines())


def _options_of(upstream: list[str] | None, listen: str | None) -> list[Option]:
    given = []
    if upstream is not None:
        given.append(Option("--upstream", ("upstream", "bootstrap"), ",".join(upstream)))
    if listen is not None:
        given.append(Option("--listen", ("listen", "bootstrap"), listen))
    return given
