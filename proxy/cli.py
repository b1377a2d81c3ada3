"""The command `sluicegate`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from config.loading import ConfigError, Loaded, load, load_file
from config.model import Log
from config.yaml_source import Source
from proxy.build_info import describe
from proxy.log_setup import set_up_logging
from proxy.running import run_until_signal
from proxy.server import CannotStart

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="A Kafka-protocol proxy that validates what producers write before a broker stores it.",
)

_Upstream = Annotated[
    list[str] | None,
    typer.Option("--upstream", metavar="HOST:PORT", help="A broker to bootstrap from; may be repeated."),
]
_Listen = Annotated[str | None, typer.Option("--listen", metavar="HOST:PORT", help="Where clients bootstrap.")]


@app.command()
def run(
    config: Annotated[Path | None, typer.Option("--config", metavar="FILE", help="The configuration file.")] = None,
    upstream: _Upstream = None,
    listen: _Listen = None,
) -> None:
    """Run the proxy until SIGTERM or Ctrl-C. Options and SLUICEGATE__… variables go before the file."""
    loaded = _loaded(config, upstream, listen)
    set_up_logging(loaded.config.log)
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)
    try:
        run_until_signal(loaded.config)
    except CannotStart as error:
        typer.echo(f"sluicegate: {error}", err=True)
        raise typer.Exit(1) from None


@app.command()
def check(file: Annotated[Path, typer.Argument(help="The configuration file.")]) -> None:
    """Check a configuration file: exit 0, or print each error with its key and line and exit 1."""
    loaded = _loaded(file, None, None)
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}")
    typer.echo(f"{file}: ok")


@app.command()
def demo(
    seconds: Annotated[float | None, typer.Option(help="End by itself after this many seconds.")] = None,
) -> None:
    """Show it at work: an embedded cluster, a proxy in front of it, and producers that get some things wrong."""
    try:
        from proxy.demo.running import run_demo  # noqa: PLC0415  # needs the extra `demo`
    except ModuleNotFoundError as error:
        typer.echo(f"sluicegate: the demo needs {error.name}: pip install 'sluicegate[demo]'", err=True)
        raise typer.Exit(1) from None
    set_up_logging(Log(level="error"))
    try:
        run_demo(seconds)
    except CannotStart as error:
        typer.echo(f"sluicegate: {error}", err=True)
        raise typer.Exit(1) from None


@app.command()
def version() -> None:
    """Say which version this is and whether its record scan is compiled."""
    typer.echo(describe())


def _loaded(file: Path | None, upstream: list[str] | None, listen: str | None) -> Loaded:
    environment = dict(os.environ)
    if upstream:
        environment["SLUICEGATE__UPSTREAM__BOOTSTRAP"] = str(upstream)
    if listen:
        environment["SLUICEGATE__LISTEN__BOOTSTRAP"] = listen
    try:
        return load_file(file, environment) if file is not None else load(Source("command line"), environment)
    except ConfigError as error:
        for problem in error.problems:
            typer.echo(str(problem), err=True)
        raise typer.Exit(1) from None


def main() -> None:
    """The console script."""
    app()
